"""Watch lag and alarms beside the query, and from outside where the application does not run.

Kafka (a connection of its own) + the log's end -> heartbeat (lag) and the ledger (alarms). It waits for no micro-batch.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from kafka.errors import KafkaError

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger.store import Store
from spark_jobs.messaging.broker import Broker
from spark_jobs.messaging.security import KafkaRefused
from spark_jobs.settings import settings
from spark_jobs.speed import alarms
from spark_jobs.speed.alarms import Backlog
from spark_jobs.speed.continuity import LogEnd
from spark_jobs.speed.land import log_end
from spark_jobs.speed.status import JOIN_SECONDS, Status

log = logging.getLogger("tidemark.speed.watch")

PROBLEM = "watch"
JUDGE_SECONDS = 5.0
PATIENCE_MS = 5_000
"""How long a connection to Kafka may take."""
NO_ANSWER = (KafkaError, KafkaRefused)


class Backlogs:
    """What is unread, by a connection to Kafka that is made anew after each failure. `end`: where the log ends."""

    def __init__(self, end: Callable[[], LogEnd]) -> None:
        self._end = end
        self._broker: Broker | None = None

    def close(self) -> None:
        if self._broker is not None:
            with suppress(*NO_ANSWER):
                self._broker.close()
            self._broker = None

    def count(self) -> Backlog:
        """How much is unread. Raises NO_ANSWER where Kafka gives none; so does `measure`."""
        with self._asking() as broker:
            return alarms.backlog(broker, self._end())

    def measure(self, known: Backlog) -> None:
        """How old it is."""
        with self._asking() as broker:
            alarms.measure(broker, known)

    @contextmanager
    def _asking(self) -> Iterator[Broker]:
        try:
            self._broker = self._broker or Broker(project_contracts().topics, bootstrap_timeout_ms=PATIENCE_MS)
            yield self._broker
        except NO_ANSWER:
            self.close()
            raise


def look_once(store: Store) -> Mapping[str, Any]:
    """Judge what rings, whether the speed application runs or not; returns its health."""
    with closing(Backlogs(log_end)) as backlogs:
        try:
            known = backlogs.count()
            backlogs.measure(known)
        except NO_ANSWER as error:
            return alarms.settle(store, error)
    return alarms.settle(store, known)


class Watch:
    """A thread: what is unread is told with each heartbeat, what rings is judged every few seconds."""

    def __init__(self, store: Store, status: Status, end: Callable[[], LogEnd]) -> None:
        self._store, self._status, self._backlogs = store, status, Backlogs(end)
        self._judge_at = 0.0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=JOIN_SECONDS)

    def _run(self) -> None:
        with closing(self._backlogs):
            while not self._ended.wait(settings().heartbeat_seconds):
                try:
                    self._look()
                except Exception as error:
                    log.exception("the watch goes on after an error")
                    self._status.problem(PROBLEM, (str(error) or repr(error)).splitlines()[0])
                else:
                    self._status.problem(PROBLEM, None)

    def _look(self) -> None:
        is_due = time.monotonic() >= self._judge_at
        try:
            known: Backlog | Exception = self._told(is_due)
        except NO_ANSWER as error:
            known = error
        if is_due:
            alarms.settle(self._store, known)
            self._judge_at = time.monotonic() + JUDGE_SECONDS

    def _told(self, is_due: bool) -> Backlog:
        """What is unread, told to whoever asks the heartbeat; its age where it `is_due`."""
        known = self._backlogs.count()
        self._status.set(lag=known.records.total(), lag_by_topic=known.records)
        if is_due:
            self._backlogs.measure(known)
            self._status.set(lag_seconds=known.seconds)
        return known
