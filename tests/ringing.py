"""What rings: now, or at last."""

from collections.abc import Callable

from spark_jobs.ledger.store import Store
from spark_jobs.speed.alarms import Backlog, settle
from spark_jobs.speed.continuity import EMPTY
from tests.platform import await_true

WAIT = 60.0


def ringing(store: Store) -> dict[str, str]:
    """Name -> message, with nothing unread in Kafka."""
    settle(store, Backlog(EMPTY))
    return {alarm.name: alarm.message for alarm in store.raised_alarms()}


def awaited(store: Store, condition: Callable[[dict[str, str]], bool]) -> dict[str, str]:
    """What rings when the condition holds at last."""
    seen = dict[str, str]()

    def holds() -> bool:
        seen.clear()
        seen.update(ringing(store))
        return condition(seen)

    await_true(holds, WAIT, "it does not come to that", every=0.05)
    return seen
