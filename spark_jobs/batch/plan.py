"""`plan`: choose a run's cut and write it down before anything else.

coverage + ledger -> one row in the ledger. Every later step, and every retry, works at that cut. Needs no JVM.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Literal

from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import LedgerError, NothingToDo, Store
from spark_jobs.ledger.turns import TAKEN_OVER
from spark_jobs.storage import coverage

Mode = Literal["changed", "full"]
Origin = Literal["facts", "raw"]
REBUILT = "rebuilt"
"""In a run's summary: the ids of the views that it builds from all facts, where these are not all views."""
FROM_FACTS = "from_facts"
"""The same: the ids of the views whose days it builds again from the facts as they are; nothing is decoded again."""
LSNS = "lsns"
"""The same: ranges of lsns that it decodes again."""


def plan(
    store: Store,
    columns: Iterable[str],
    run_id: str,
    days: Sequence[date] = (),
    mode: Mode = "changed",
    wanted: Mapping[str, Any] | None = None,
    others: Mapping[str, str] | None = None,
) -> Run:
    """Plan the run, or return the plan that its first try wrote.

    columns: of every view (`View.column`). wanted: what else its summary says. others: runs that wait and cannot say so
    yet, id -> day (ISO). The cut is the highest lsn that is complete in master.log and in speed.partials for every view
    that the speed layer has begun with, with nothing missing below.

    Raises RunActive while another run is at work, Merged once another has done its days.
    """
    if (known := store.run(run_id)) is not None:
        return store.begin_run(known)
    now, previous = datetime.now(UTC), store.decoded_cut()
    landed = coverage.landed(previous - 1)
    cut, held_by = coverage.reach(previous, landed.keys(), coverage.covered(previous), columns)
    return store.begin_run(
        Run(
            run_id=run_id,
            mode=mode,
            days=sorted({day.isoformat() for day in days}),
            previous_cut=previous,
            cut=cut,
            cut_at=landed.get(cut),
            summary={"held_by": dict(held_by), **(wanted or {})},
        ),
        cut_chosen_at=now,
        others=others,
    )


def plan_rebuild(store: Store, views: Iterable[str], run_id: str, parts: int, origin: Origin = "facts") -> Run:
    """Plan to build a part of the views once more, at the published cut: those whose last full build is longest ago.

    origin `raw`: after all raw records are decoded once more. The others stay as they are; so what differs from what is
    published, differs without a reason. Raises NothingToDo where nothing is published yet.
    """
    if (known := store.run(run_id)) is not None:
        return store.begin_run(known)
    current, decoded = store.current_publication(), store.decoded_cut()
    if current is None or not current.cut:
        raise NothingToDo("nothing is built yet, so there is nothing to build once more")
    if decoded != current.cut:
        raise LedgerError(
            f"facts go up to {decoded}, publication {current.id} to {current.cut}: `batch_layer` goes first"
        )
    rebuilt = store.least_rebuilt(views)
    return store.begin_run(
        Run(
            run_id=run_id,
            mode="full",
            previous_cut=current.cut,
            cut=current.cut,
            cut_at=coverage.landed(current.cut - 1).get(current.cut),
            summary={
                REBUILT: rebuilt[: math.ceil(len(rebuilt) / parts)],
                LSNS: [[1, current.cut]] if origin == "raw" else [],
            },
        )
    )


def describe(run: Run) -> list[str]:
    """The plan in lines, for people."""
    new = f"lsn {run.previous_cut + 1} to {run.cut} are new" if run.cut > run.previous_cut else "nothing is new"
    lines = [f"run {run.run_id}: cut {run.cut}, mode {run.mode}; {new}"]
    lines += [f"views to build once more: {', '.join(views)}" for views in [run.summary.get(REBUILT)] if views]
    if run.days:
        lines.append(f"days to rebuild: {', '.join(run.days)}")
    if taken := run.summary.get(TAKEN_OVER):
        lines.append(f"days of {len(taken)} runs that waited are among them: {', '.join(taken)}")
    lines += [
        f"view {column} has no partials at lsn {lsn}: the cut stays below it until the speed layer has caught up"
        for column, lsn in run.summary.get("held_by", {}).items()
    ]
    return lines
