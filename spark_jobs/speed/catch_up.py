"""Catch-up: every lsn of the master log gets the partials that it lacks.

master.log - coverage of speed.partials -> gaps -> the same pass -> speed.partials. Covers a crash between the two
commits, views that were set aside, and views that are new.
"""

import datetime as dt
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.settings import settings
from spark_jobs.speed import partials_table
from spark_jobs.speed.distributed import take
from spark_jobs.speed.partials_step import Outcome, process, process_again
from spark_jobs.storage import coverage
from spark_jobs.storage.log_reader import LogRecords
from spark_jobs.storage.side_inputs import SideInputs


@dataclass(frozen=True)
class Gap:
    """Consecutive lsns that lack the same views; `is_new`: they have no partials at all, nor verdicts."""

    counts: Mapping[int, int]
    views: frozenset[str]
    is_new: bool

    @property
    def bounds(self) -> tuple[int, int]:
        return min(self.counts), max(self.counts)


def gaps(
    landed: Mapping[int, int], covered: Mapping[int, frozenset[str]], floors: Mapping[str, int], most_records: int
) -> Iterator[Gap]:
    """The gaps, in lsn order, in portions of about `most_records`.

    landed: records per lsn of the log; covered: views with partials per lsn; floors: per view column, the lsn
    at and below which its batch build makes partials needless.
    """
    counts: dict[int, int] = {}
    key: tuple[frozenset[str], bool] | None = None
    for lsn in sorted(landed):
        lacking = frozenset(view for view, floor in floors.items() if lsn > floor) - covered.get(lsn, frozenset())
        wanted = (lacking, lsn not in covered) if lacking else None
        is_full = sum(counts.values()) + landed[lsn] > most_records
        if counts and (wanted != key or is_full or lsn - 1 not in counts):
            yield _gap(counts, key)
            counts = {}
        key = wanted
        if wanted:
            counts[lsn] = landed[lsn]
    if counts:
        yield _gap(counts, key)


def _gap(counts: dict[int, int], key: tuple[frozenset[str], bool] | None) -> Gap:
    assert key is not None
    return Gap(dict(counts), *key)


def catch_up(
    spark: SparkSession,
    views: Sequence[View],
    floors: Mapping[str, int],
    window: IdWindow,
    side_inputs: SideInputs,
    progress: Callable[[Gap, Outcome], None],
) -> None:
    """Compute all missing partials. `floors`: as in `gaps`; a view without one is needed from the first lsn on."""
    wanted = {view.column: floors.get(view.column, 0) for view in views}
    above = min(wanted.values(), default=0)
    computed = {lsn: computed_at.views for lsn, computed_at in coverage.covered(above).items()}
    for gap in gaps(coverage.records(above), computed, wanted, settings().max_records_per_batch):
        missing = [view for view in views if view.column in gap.views]
        started_at = dt.datetime.now(dt.UTC)
        first, last = gap.bounds
        batch = take(LogRecords(spark, (gap.bounds,)), side_inputs.history)
        if gap.is_new:
            outcome = process(batch, gap.counts, missing, window, side_inputs, started_at)
        else:
            outcome = process_again(
                batch, list(gap.counts), missing, partials_table.duplicates(first, last), side_inputs
            )
        progress(gap, outcome)


def restore_window(window: IdWindow) -> None:
    """Fill the window from the stored ids of recent micro-batches."""
    recent = partials_table.recent_ids().to_pylist()
    for lsn, rows in itertools.groupby(recent, key=lambda row: row["lsn"]):
        tasks = list(rows)
        window.add(lsn, b"".join(row["ids"] for row in tasks), tasks[0]["at"])
