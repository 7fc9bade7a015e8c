"""What the speed application tells about itself: its heartbeat in the ledger.

counts, times, alarms -> ledger heartbeat `speed` -> `tidemark speed status`, the DAG `speed_layer`.
"""

import datetime as dt
import logging
import os
import socket
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings

log = logging.getLogger("tidemark.speed.status")

COMPONENT = "speed"
UNNAMED = "names for readers"
NOT_SERVED = "view not served: "
"""Alarms about a single view begin with it."""
SILENT_AFTER_HEARTBEATS = 30
LAG_KNOWN_HEARTBEATS = 3
"""When Kafka could not be asked for so long, what was unread before says nothing any more."""
JOIN_SECONDS = 10.0
STALLED_SECONDS = 900.0
"""No micro-batch takes so long, unless it waits for something that does not come."""
RECENT = dt.timedelta(minutes=10)
"""The time over which rejects are counted against records."""
Counts = Mapping[str, int]


class Clock:
    """Seconds per step of a micro-batch."""

    def __init__(self) -> None:
        self.started_at = dt.datetime.now(dt.UTC)
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, step: str) -> None:
        now = time.perf_counter()
        self.seconds[step], self._last = now - self._last, now


class Recent:
    """Records and rejects per topic of the last minutes."""

    def __init__(self) -> None:
        self._taken = deque[tuple[dt.datetime, Counts, Counts]]()
        self._records, self._rejects = Counter[str](), Counter[str]()

    def add(self, at: dt.datetime, records: Counts, rejects: Counts) -> None:
        self._taken.append((at, records, rejects))
        self._records.update(records)
        self._rejects.update(rejects)

    def counts(self) -> dict[str, tuple[int, int]]:
        """Topic -> (records, rejects)."""
        while self._taken and self._taken[0][0] < dt.datetime.now(dt.UTC) - RECENT:
            _, records, rejects = self._taken.popleft()
            self._records.subtract(records)
            self._rejects.subtract(rejects)
        return {topic: (records, self._rejects[topic]) for topic, records in self._records.items() if records}


@dataclass(frozen=True)
class Numbers:
    """For metrics. totals: (what, of which topic or outcome) -> how many; seconds: step -> how long in all."""

    state: Mapping[str, Any]
    totals: Mapping[tuple[str, str], int]
    seconds: Mapping[str, float]
    views_aside: int


class Status:
    """The current state; written by whoever calls `beat`, at most a few times a second."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock, self._writing, self._ended = threading.Lock(), threading.Lock(), threading.Event()
        self._beating = threading.Thread(target=self._keep_beating, name="heartbeat", daemon=True)
        self._state: dict[str, Any] = {"state": "starting", "pid": os.getpid(), "lsn": 0, "lag": None}
        self._state |= {"is_named": False, "batch_began_at": None, "host": socket.gethostname()}
        self._lag_at = time.monotonic()
        self.views_aside: dict[str, str] = {}
        """Views whose pass failed, and why: they are left out until the next start, with an alarm."""
        self._problems: dict[str, str] = {}
        self._recent = Recent()
        self._totals = Counter[tuple[str, str]]()
        self._seconds = defaultdict[str, float](float)
        self.beat()

    def set(self, **facts: Any) -> None:
        with self._lock:
            self._state.update(facts)
            if "lag" in facts:
                self._lag_at = time.monotonic()
        self.beat()

    def keep_beating(self) -> None:
        """A sign of life now and then, whatever the application is at: a long micro-batch is no silence."""
        self._beating.start()

    def close(self) -> None:
        """No more signs of life; a thread that Python's end cuts off can take the process down with it."""
        self._ended.set()
        if self._beating.is_alive():
            self._beating.join(timeout=JOIN_SECONDS)

    def _keep_beating(self) -> None:
        while not self._ended.wait(settings().heartbeat_seconds):
            try:
                self.beat()
            except Exception:
                log.exception("a heartbeat is missing in the ledger")

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

    def batch_begins(self) -> None:
        """From now on until `batch` a micro-batch is at work."""
        with self._lock:
            self._state["batch_began_at"] = dt.datetime.now(dt.UTC).isoformat()

    def batch(
        self,
        lsn: int,
        records: int,
        counts: dict[str, int],
        seconds: dict[str, float],
        records_of: Counts | None = None,
        rejects_of: Counts | None = None,
    ) -> None:
        """A micro-batch is complete. records_of, rejects_of: the same per topic."""
        now, rounded = dt.datetime.now(dt.UTC), {name: round(value, 3) for name, value in seconds.items()}
        last = {"records": records, **counts, "seconds": rounded, "at": now.isoformat()}
        with self._lock:
            self._recent.add(now, records_of or {}, rejects_of or {})
            counted = {"records": records_of, "rejects": rejects_of, "outcomes": counts, "micro_batches": {"": 1}}
            for what, each in counted.items():
                self._totals.update({(what, of): number for of, number in (each or {}).items()})
            for step, taken in seconds.items():
                self._seconds[step] += taken
        self.set(lsn=lsn, last_batch=last, batch_began_at=None)

    def numbers(self) -> "Numbers":
        """What this life of the application has counted, and its state now."""
        with self._lock:
            return Numbers({**self._state}, Counter(self._totals), {**self._seconds}, len(self.views_aside))

    def beat(self) -> None:
        with self._writing:  # or an older state could be written after a newer one
            self._store.beat(COMPONENT, self._payload())

    def _payload(self) -> dict[str, Any]:
        with self._lock:
            aside = {f"view set aside: {view}": reason for view, reason in self.views_aside.items()}
            payload = {**self._state, "alarms": {**aside, **self._problems}, "recent": self._recent.counts()}
            if time.monotonic() - self._lag_at > LAG_KNOWN_HEARTBEATS * settings().heartbeat_seconds:
                payload["lag"] = None
        return payload


def health(store: Store) -> dict[str, Any]:
    """The heartbeat's payload with `age_seconds`, `is_alive`, all its `alarms`, and `restart_may_help`."""
    beat = store.heartbeat(COMPONENT)
    if beat is None:
        alarms = {"heartbeat": "no heartbeat was ever written"}
        return {"is_alive": False, "state": "never started", "alarms": alarms, "restart_may_help": False}
    age, alarms = seconds_since(beat.at), dict(beat.payload.get("alarms", {}))
    is_silent = age >= settings().heartbeat_seconds * SILENT_AFTER_HEARTBEATS
    is_alive = not is_silent and beat.payload["state"] != "stopped"
    if not is_alive:
        alarms["heartbeat"] = beat.payload.get("error") or f"silent for {age:.0f} s"
    began_at = beat.payload.get("batch_began_at")
    at_work = seconds_since(dt.datetime.fromisoformat(began_at)) if is_alive and began_at else 0.0
    if at_work > STALLED_SECONDS:
        alarms["stall"] = f"a micro-batch has been at work for {at_work:.0f} s"
    state = {"age_seconds": round(age, 1), "is_alive": is_alive, "alarms": alarms}
    return {**beat.payload, **state, "restart_may_help": is_silent or "stall" in alarms}


def seconds_since(moment: dt.datetime) -> float:
    return (dt.datetime.now(dt.UTC) - moment).total_seconds()
