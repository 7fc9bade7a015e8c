"""What `tidemark batch status` lists: publications and runs, newest first; runs that wait; plans that failed."""

from typing import Any

from spark_jobs.cli.step import show
from spark_jobs.ledger.store import Store

Listed = dict[str, list[dict[str, Any]]]
TITLES = {"waiting": "runs that wait", "stopped_plans": "plans that failed"}
"""Of parts that are shown only where there are any."""


def listed(store: Store) -> Listed:
    current = store.current_publication()
    return {
        "publications": [
            {"id": p.id, "kind": p.kind, "state": p.state, "cut": p.cut, "run": p.run_id, "done_at": p.done_at}
            | {"restores": p.restores, "is_current": current is not None and p.id == current.id}
            for p in store.publications(newest=20)
        ],
        "runs": [
            {"run": r.run_id, "state": r.state, "step": r.step, "mode": r.mode, "cut": r.cut, "days": r.days}
            | {"started_at": r.started_at, "error": r.error}
            for r in store.runs()
        ],
        "waiting": [
            {"run": w.run_id, "days": w.days, "since": w.since, "taken_by": w.taken_by} for w in store.waiting_runs()
        ],
        "stopped_plans": [{"run": one.run_id, "at": one.at, "error": one.error} for one in store.stopped_plans()],
    }


def printed(found: Listed) -> None:
    """As tables in a terminal."""
    for part, rows in found.items():
        if rows or part not in TITLES:
            show(TITLES.get(part, part), rows)
