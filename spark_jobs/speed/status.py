"""What the speed application tells about itself: its heartbeat in the ledger.

counts, times, alarms -> ledger heartbeat `speed` -> `tidemark speed status`, the `speed_layer` DAG, the console.
"""

import datetime as dt
import os
import threading
import time
from collections.abc import Mapping
from typing import Any

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings

COMPONENT = "speed"
UNNAMED = "names for readers"
SILENT_AFTER_HEARTBEATS = 30


class Clock:
    """Seconds per step of a micro-batch."""

    def __init__(self) -> None:
        self.started_at = dt.datetime.now(dt.UTC)
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step], self._last = now - self._last, now


class Status:
    """The current state; written by whoever calls `beat`, at most a few times a second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._state: dict[str, Any] = {"state": "starting", "pid": os.getpid(), "lsn": 0, "lag": None, "alarms": {}}
        self._state["is_named"] = False
        self.views_aside: dict[str, str] = {}
        self._problems: dict[str, str] = {}
        self.beat()

    def set(self, **facts: Any) -> None:
        with self._lock:
            self._state.update(facts)
        self.beat()

    def set_aside(self, failed: Mapping[str, str]) -> None:
        """Views whose pass failed are left out until the next start, with an alarm."""
        self.views_aside.update(failed)

    def set_named(self, refused: str | None = None) -> None:
        """Tables and serving views have their names for readers, unless they were `refused`, for that reason."""
        self.problem(UNNAMED, refused)
        self.set(is_named=refused is None)

    def problem(self, name: str, what: str | None) -> None:
        """An alarm of a part that goes on beside the query, until it says None."""
        with self._lock:
            if what is None:
                self._problems.pop(name, None)
            else:
                self._problems[name] = what

    def batch(self, lsn: int, records: int, counts: dict[str, int], seconds: dict[str, float]) -> None:
        rounded = {name: round(value, 3) for name, value in seconds.items()}
        last = {"records": records, **counts, "seconds": rounded, "at": dt.datetime.now(dt.UTC).isoformat()}
        self.set(lsn=lsn, last_batch=last)

    def last_batch_at(self) -> dt.datetime | None:
        """When the last micro-batch was complete."""
        last = self._state.get("last_batch")
        return dt.datetime.fromisoformat(last["at"]) if last else None

    def beat(self) -> None:
        with self._lock:
            aside = {f"view set aside: {view}": reason for view, reason in self.views_aside.items()}
            payload = {**self._state, "alarms": {**self._state["alarms"], **aside, **self._problems}}
        self._store.beat(COMPONENT, payload)


def health() -> dict[str, Any]:
    """The heartbeat's payload with `age_seconds`, `is_alive` and all `alarms`."""
    beat = ledger.open().heartbeat("speed")
    if beat is None:
        return {"is_alive": False, "state": "never started", "alarms": {"heartbeat": "no heartbeat was ever written"}}
    age = (dt.datetime.now(dt.UTC) - beat.at).total_seconds()
    is_alive = age < settings().heartbeat_seconds * SILENT_AFTER_HEARTBEATS and beat.payload["state"] != "stopped"
    alarms = dict(beat.payload.get("alarms", {}))
    if not is_alive:
        alarms["heartbeat"] = beat.payload.get("error") or f"silent for {age:.0f} s"
    return {**beat.payload, "age_seconds": round(age, 1), "is_alive": is_alive, "alarms": alarms}
