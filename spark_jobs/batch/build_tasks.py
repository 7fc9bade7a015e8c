"""Choose each view's build mode: everything, a merge, some days again, a re-resolution, or nothing. Pure.

run + current sources + days with new facts -> one BuildTask per view.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain

from spark_jobs.batch.plan import FROM_FACTS, REBUILT
from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import Source

Days = Mapping[str, Iterable[str]]
"""Event type -> days (ISO)."""


class BuildMode(StrEnum):
    FULL = "full"  # from all facts
    MERGE = "merge"  # what was built, and the partials of the new facts
    BUCKETS = "buckets"  # the same, but some days from all their facts
    RESOLVE = "resolve"  # a sequence: touched keys from their first touched stretch on
    SAME = "same"  # nothing touched it: the version stands, at the new cut


@dataclass(frozen=True)
class BuildTask:
    """base: what was built; its versions are None if nothing was. days: those to build again from all their facts.

    touched: of an aggregate with a bucket, those days, and those of new facts.
    """

    view: View
    run_id: str
    mode: BuildMode
    cut: int
    cut_at: datetime | None
    base: Source
    days: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()


def days_together(parts: Iterable[Days]) -> dict[str, list[str]]:
    """The days that any of the parts has for an event type, in order."""
    together: dict[str, list[str]] = {}
    for event_type, days in chain.from_iterable(part.items() for part in parts):
        together[event_type] = sorted({*together.get(event_type, ()), *days})
    return together


def build_task(view: View, run: Run, base: Source, new: Days, changed: Days) -> BuildTask:
    """The task of one view.

    base: its source in the current publication. new: the days of facts in (base.cut, cut]. changed: the days whose
    older facts were replaced since that source was built, by this run or by one that the view has missed.
    """
    redone = run.summary.get(FROM_FACTS, [])
    forced = run.days if FROM_FACTS not in run.summary or view.id in redone else ()
    touched, replaced = ({day for name in view.event_types for day in days.get(name, ())} for days in (new, changed))
    again = {*replaced, *forced} if view.bucket else set[str]()
    is_full = run.mode == "full" and view.id in run.summary.get(REBUILT, [view.id])
    if is_full or base.batch_version is None or (view.id in redone and not view.bucket):
        mode = BuildMode.FULL
    elif again:
        mode = BuildMode.BUCKETS
    elif replaced:
        mode = BuildMode.FULL  # what was merged or resolved cannot be taken out again
    elif not touched:
        mode = BuildMode.SAME
    else:
        mode = BuildMode.MERGE if isinstance(view, AggregateView) else BuildMode.RESOLVE
    days = sorted(again) if mode is BuildMode.BUCKETS else ()
    of_bucket = sorted({*touched, *again}) if view.bucket else ()
    return BuildTask(view, run.run_id, mode, run.cut, run.cut_at, base, tuple(days), tuple(of_bucket))
