"""Choose each view's build mode: everything, the touched buckets, a merge, a re-resolution, or nothing. Pure.

run + current sources + days with new facts -> one BuildTask per view.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import Source

New = Mapping[str, Mapping[str, int]]
"""event type -> day (ISO) -> facts past the view's cut."""


class BuildMode(StrEnum):
    FULL = "full"  # from all facts
    BUCKETS = "buckets"  # the touched days, from all their facts
    MERGE = "merge"  # what was built, and the partials of the new facts
    RESOLVE = "resolve"  # a sequence: touched keys from their first touched stretch on
    SAME = "same"  # nothing touched it: the version stands, at the new cut


@dataclass(frozen=True)
class BuildTask:
    """`days`: those to build again (BUCKETS). `base`: what was built; None, or with a version None, if nothing was."""

    view: View
    run_id: str
    mode: BuildMode
    cut: int
    cut_at: datetime | None
    base: Source
    days: tuple[str, ...] = ()


def build_task(view: View, run: Run, base: Source, new: New, changed: Mapping[str, list[str]]) -> BuildTask:
    """The task of one view.

    base: its source in the current publication. new: facts in (base.cut, cut]. changed: event type -> days whose
    older facts were replaced since that publication, by this run or by one that was not published.
    """
    touched = {day for event_type in view.event_types for day in new.get(event_type, ())}
    replaced = {day for event_type in view.event_types for day in changed.get(event_type, ())}
    forced = set(run.days) if view.bucket else set()
    mode = _mode(view, run, base, bool(touched), bool(replaced), bool(forced))
    days = tuple(sorted(touched | replaced | forced)) if mode is BuildMode.BUCKETS else ()
    return BuildTask(view, run.run_id, mode, run.cut, run.cut_at, base, days)


def _mode(view: View, run: Run, base: Source, is_touched: bool, is_replaced: bool, is_forced: bool) -> BuildMode:
    if run.mode == "full" or base.batch_version is None:
        return BuildMode.FULL
    if view.bucket:
        return BuildMode.BUCKETS if is_touched or is_replaced or is_forced else BuildMode.SAME
    if is_replaced:
        return BuildMode.FULL  # what was merged or resolved cannot be taken out again
    if not is_touched:
        return BuildMode.SAME
    return BuildMode.MERGE if isinstance(view, AggregateView) else BuildMode.RESOLVE
