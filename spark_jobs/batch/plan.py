"""`plan`: choose a run's cut and write it down before anything else.

coverage + ledger -> one row in the ledger. Every later step, and every retry, works at that cut. Needs no JVM.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Literal

from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import Store
from spark_jobs.storage import coverage

Mode = Literal["changed", "full"]


def plan(store: Store, columns: Iterable[str], run_id: str, days: Sequence[date] = (), mode: Mode = "changed") -> Run:
    """Plan the run, or return the plan that its first try wrote.

    columns: of every view (`View.column`). The cut is the highest lsn that is complete in master.log and in
    speed.partials for every view that the speed layer has begun with, with nothing missing below.

    Raises RunActive while another run is at work.
    """
    if (known := store.run(run_id)) is not None:
        return store.begin_run(known)
    previous = store.decoded_cut()
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
            summary={"held_by": dict(held_by)},
        )
    )


def describe(run: Run) -> list[str]:
    """The plan in lines, for people."""
    new = f"lsn {run.previous_cut + 1} to {run.cut} are new" if run.cut > run.previous_cut else "nothing is new"
    lines = [f"run {run.run_id}: cut {run.cut}, mode {run.mode}; {new}"]
    if run.days:
        lines.append(f"days to rebuild: {', '.join(run.days)}")
    lines += [
        f"view {column} has no partials at lsn {lsn}: the cut stays below it until the speed layer has caught up"
        for column, lsn in run.summary.get("held_by", {}).items()
    ]
    return lines
