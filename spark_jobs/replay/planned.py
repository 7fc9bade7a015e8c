"""Wanted -> the plan of a run that does it, at the newest cut; and where a replay is.

Views are built again from the facts as they are, or facts are made again from the raw bytes, and then the views over
those that came out otherwise.
"""

from datetime import UTC, date, datetime

from spark_jobs.batch.plan import FROM_FACTS, LSNS, REBUILT, plan
from spark_jobs.ledger.schema import Replay, Run
from spark_jobs.ledger.store import Busy, Store
from spark_jobs.ledger.view_versions import PROMOTES
from spark_jobs.registry.views import Views
from spark_jobs.replay.wanted import Wanted
from spark_jobs.settings import settings


def plan_replay(store: Store, views: Views, run_id: str) -> Run:
    """Plan the run of a replay at the newest cut, or return the plan of its first try.

    Raises RunActive while another run is at work, Busy outside of the hours of the settings, LedgerError for a replay
    that is unknown or cancelled.
    """
    if store.run(run_id) is None and not may_begin(settings().replay_hours, datetime.now(UTC)):
        raise Busy(f"replays begin in the hours {settings().replay_hours} UTC (replay_hours)")
    wanted = Wanted.of_json(store.asked_replay(run_id).wanted)
    chosen, columns = [view.id for view in wanted.chosen(views)], [view.column for view in views]
    days = [date.fromisoformat(day) for day in wanted.days]
    if wanted.origin == "facts":
        about = {PROMOTES: wanted.promotes(views, store.promoted())}
        if wanted.is_all:
            return plan(store, columns, run_id, mode="full", wanted={REBUILT: chosen, **about})
        return plan(store, columns, run_id, days, wanted={FROM_FACTS: chosen, **about})
    lsns = [(1, store.decoded_cut())] if wanted.is_all else wanted.lsns
    return plan(store, columns, run_id, days, wanted={LSNS: [[first, last] for first, last in lsns if first <= last]})


def may_begin(hours: str | None, now: datetime) -> bool:
    """Whether the time is in the hours, such as 22-6: from the first on, before the second."""
    if hours is None:
        return True
    first, end = (int(hour) for hour in hours.split("-"))
    return first <= now.hour < end if first < end else now.hour >= first or now.hour < end


def state(replay: Replay, run: Run | None) -> str:
    """Where the replay is, in a word or a few."""
    if replay.cancelled_at is not None:
        return "cancelled"
    if run is None:
        return "planned"
    if run.state in ("superseded", "failed"):
        return f"{run.state}: {run.error}"
    if run.state == "finished":
        return "nothing differs" if run.summary.get("nothing_new") or not replay.differences else "published"
    if replay.compared_at is None:
        return f"under way ({run.step})"
    return "approved" if replay.approved_at else "waits for approval"
