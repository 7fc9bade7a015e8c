"""Catch-up: every lsn of the master log gets the partials that it lacks.

master.log - coverage of speed.partials -> gaps -> the same pass -> speed.partials. Covers a crash between the two
commits, views that were set aside, and views that are new.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.settings import settings
from spark_jobs.speed import land, partials_table
from spark_jobs.speed.distributed import take
from spark_jobs.speed.partials_step import process, process_again
from spark_jobs.storage import coverage, duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.log_reader import LogRecords
from spark_jobs.storage.side_inputs import SideInputs

LSNS_AT_ONCE = 100_000


@dataclass(frozen=True)
class Gap:
    """Consecutive lsns, with their records, that lack the same views; `is_new`: no pass has seen them yet."""

    counts: dict[int, int]
    views: frozenset[str]
    is_new: bool

    @property
    def bounds(self) -> tuple[int, int]:
        return min(self.counts), max(self.counts)

    def goes_on(self, lsn: int, views: frozenset[str], is_new: bool) -> bool:
        return lsn - 1 in self.counts and (views, is_new) == (self.views, self.is_new)


def gaps(
    landed: Mapping[int, int],
    covered: Mapping[int, frozenset[str]],
    floors: Mapping[str, int],
    decoded: int,
    most_records: int,
) -> Iterator[Gap]:
    """The gaps, in lsn order, in portions of about `most_records`.

    landed: records per lsn of the log; covered: views with partials per lsn; floors: per view column, the lsn
    at and below which its batch build makes partials needless; decoded: the lsn up to which there are facts, so
    that every lsn was computed once, and one without coverage has been trimmed.
    """
    gap: Gap | None = None
    for lsn, records in sorted(landed.items()):
        lacking = frozenset(view for view, floor in floors.items() if lsn > floor) - covered.get(lsn, frozenset())
        is_new = lsn not in covered and lsn > decoded
        if gap and gap.goes_on(lsn, lacking, is_new) and sum(gap.counts.values()) + records <= most_records:
            gap.counts[lsn] = records
            continue
        if gap:
            yield gap
        gap = Gap({lsn: records}, lacking, is_new) if lacking else None
    if gap:
        yield gap


def catch_up(
    spark: SparkSession,
    views: Sequence[View],
    floors: Mapping[str, int],
    decoded: int,
    window: IdWindow,
    side_inputs: SideInputs,
    fence: Fence,
    progress: Callable[[Gap, Mapping[str, str]], None],
) -> None:
    """Compute all missing partials; `progress` hears of each gap, and why a view failed in it.

    floors, decoded: as in `gaps`; a view without a floor is needed from the first lsn on.
    """
    wanted = {view.column: floors.get(view.column, 0) for view in views}
    for gap in all_gaps(wanted, decoded):
        missing = [view for view in views if view.column in gap.views]
        started_at = dt.datetime.now(dt.UTC)
        batch = take(LogRecords(spark, (gap.bounds,)), side_inputs.history, fence)
        if gap.is_new:
            failed = process(batch, gap.counts, missing, window, side_inputs, started_at).failed
        else:
            failed = process_again(batch, gap.counts, missing, _duplicates(gap, decoded), side_inputs)
        progress(gap, failed)


def all_gaps(floors: Mapping[str, int], decoded: int) -> Iterator[Gap]:
    """The gaps between log and partials, portion by portion: a new view asks for the whole past."""
    head = land.log_end().lsn
    for above in range(min(floors.values(), default=head), head, LSNS_AT_ONCE):
        upto = min(above + LSNS_AT_ONCE, head)
        computed = {lsn: computed_at.views for lsn, computed_at in coverage.covered(above, upto).items()}
        yield from gaps(coverage.records(above, upto), computed, floors, decoded, settings().max_records_per_batch)


def _duplicates(gap: Gap, decoded: int) -> pa.Table:
    """What repeats an earlier fact in the gap, as the passes found it; below `decoded`, as the batch layer did.

    Of a trimmed lsn the batch layer alone knows.
    """
    first, last = gap.bounds
    found = [partials_table.duplicates(max(first, decoded + 1), last)]
    if first <= decoded:
        lsn = pc.field("lsn")
        within = (lsn >= first) & (lsn <= min(last, decoded))
        columns = found[0].schema.names
        settled = duckdb_reader.dataset(tables.DUPLICATES).to_table(columns=columns, filter=within)
        found.append(settled.cast(found[0].schema))
    return pa.concat_tables(found)
