"""Catch-up: every lsn of the master log gets the partials that it lacks.

master.log - coverage of speed.partials -> gaps -> the same pass -> speed.partials. Covers a crash between the two
commits, views that were set aside, and views that are new.
"""

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.settings import settings
from spark_jobs.speed import partials_table
from spark_jobs.speed.distributed import take
from spark_jobs.speed.partials_step import process, process_again
from spark_jobs.storage import coverage
from spark_jobs.storage.log_reader import LogRecords
from spark_jobs.storage.side_inputs import SideInputs


@dataclass(frozen=True)
class Gap:
    """Consecutive lsns, with their records, that lack the same views; `is_new`: they have no partials at all."""

    counts: dict[int, int]
    views: frozenset[str]
    is_new: bool

    @property
    def bounds(self) -> tuple[int, int]:
        return min(self.counts), max(self.counts)

    def goes_on(self, lsn: int, views: frozenset[str], is_new: bool) -> bool:
        return lsn - 1 in self.counts and (views, is_new) == (self.views, self.is_new)


def gaps(
    landed: Mapping[int, int], covered: Mapping[int, frozenset[str]], floors: Mapping[str, int], most_records: int
) -> Iterator[Gap]:
    """The gaps, in lsn order, in portions of about `most_records`.

    landed: records per lsn of the log; covered: views with partials per lsn; floors: per view column, the lsn
    at and below which its batch build makes partials needless.
    """
    gap: Gap | None = None
    for lsn, records in sorted(landed.items()):
        lacking = frozenset(view for view, floor in floors.items() if lsn > floor) - covered.get(lsn, frozenset())
        is_new = lsn not in covered
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
    window: IdWindow,
    side_inputs: SideInputs,
    progress: Callable[[Gap, Mapping[str, str]], None],
) -> None:
    """Compute all missing partials; `progress` hears of each gap, and why a view failed in it.

    floors: as in `gaps`; a view without one is needed from the first lsn on.
    """
    wanted = {view.column: floors.get(view.column, 0) for view in views}
    above = min(wanted.values(), default=0)
    computed = {lsn: computed_at.views for lsn, computed_at in coverage.covered(above).items()}
    for gap in gaps(coverage.records(above), computed, wanted, settings().max_records_per_batch):
        missing = [view for view in views if view.column in gap.views]
        started_at = dt.datetime.now(dt.UTC)
        batch = take(LogRecords(spark, (gap.bounds,)), side_inputs.history)
        if gap.is_new:
            failed = process(batch, gap.counts, missing, window, side_inputs, started_at).failed
        else:
            failed = process_again(batch, gap.counts, missing, partials_table.duplicates(*gap.bounds), side_inputs)
        progress(gap, failed)
