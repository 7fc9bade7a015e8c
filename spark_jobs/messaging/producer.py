"""Send records to Kafka: acknowledged by all replicas, idempotent, in the order given, no error lost.

Record -> KafkaProducer.send -> Sent, once Kafka has it. For alerts, promotions and what people send by hand.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import starmap
from typing import Any, Self

from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaTimeoutError

from spark_jobs.messaging import security, topics
from spark_jobs.settings import Settings

DELIVERY_SECONDS = 120.0
MARGIN_SECONDS = 30.0
TOPIC_SECONDS = 5  # until somebody asks why a topic's partitions are not known
LINGER_MS = 5
"""How long a record waits for others to go with it: one by one they were four hundred a second."""
MOST_WAITING = 1000
MAX_RECORD_BYTES = 64 * 1024 * 1024  # the topic decides: its own limit is below that


class SendError(RuntimeError):
    """Records that Kafka did not take, or may not have taken."""


@dataclass(frozen=True)
class Record:
    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Sent:
    """Where an acknowledged record is, and its time there; a repeated answer may not know the offset."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime

    def __str__(self) -> str:
        return f"{self.topic} partition {self.partition} offset {self.offset if self.offset >= 0 else 'unknown'}"


class Producer:
    """One connection. Raises SendError where Kafka cannot be reached."""

    def __init__(self, client: Any = None) -> None:
        self._client = client or connected()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._client.close(timeout=5)

    def send(self, records: Iterable[Record], acknowledged: Callable[[Sent], None] = lambda sent: None) -> int:
        """Send all of them and wait for Kafka; `acknowledged` hears of each, in the order given. Returns how many.

        After the first that Kafka does not take none is sent any more; those under way are waited for, a bounded
        time, before SendError says how many are acknowledged.
        """
        count, failed = 0, list[SendError]()
        for outcome in self._outcomes(records):
            if isinstance(outcome, SendError):
                failed.append(outcome)
            else:
                count += 1
                acknowledged(outcome)
        if failed:
            raise SendError(f"{failed[0]} ({count:,} record(s) are acknowledged, {len(failed):,} are not)")
        return count

    def _outcomes(self, records: Iterable[Record]) -> Iterator[Sent | SendError]:
        waiting: deque[tuple[Record, Any]] = deque()
        for record in records:
            try:
                waiting.append((record, self._queue(record)))
            except SendError as error:
                yield from starmap(_outcome, waiting)
                yield error
                return
            while waiting and (len(waiting) > MOST_WAITING or waiting[0][1].is_done):
                outcome = _outcome(*waiting.popleft())
                yield outcome
                if isinstance(outcome, SendError):
                    yield from starmap(_outcome, waiting)
                    return
        yield from starmap(_outcome, waiting)

    def _queue(self, record: Record) -> Any:
        """The future of one record. Waits for a broker that is away, as a delivery does, not for a missing topic."""
        until = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                return self._client.send(record.topic, record.value, record.key, list(record.headers))
            except KafkaTimeoutError as error:
                if topics.is_there(record.topic) is False:
                    hint = "`tidemark topics create` makes the topics"
                    raise SendError(f"there is no topic {record.topic}; {hint}") from error
                if time.monotonic() > until:
                    raise SendError(f"topic {record.topic}: {error!r}") from error
            except (KafkaError, ValueError) as error:
                raise SendError(security.why(error, record.topic)) from error


def _outcome(record: Record, answer: Any) -> Sent | SendError:
    """Waits for Kafka's answer."""
    try:
        place = answer.get(timeout=DELIVERY_SECONDS + MARGIN_SECONDS)
    except KafkaError as error:
        return SendError(security.why(error, record.topic))
    stamped = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=place.timestamp)
    return Sent(place.topic, place.partition, place.offset, stamped)


def connected(here: Settings | None = None) -> Any:
    """A client of the Kafka of these settings, by default the process's."""
    try:
        return KafkaProducer(
            **security.client(here),
            client_id="tidemark",
            acks="all",
            enable_idempotence=True,
            allow_auto_create_topics=False,
            linger_ms=LINGER_MS,
            delivery_timeout_ms=DELIVERY_SECONDS * 1000,
            max_block_ms=TOPIC_SECONDS * 1000,
            max_request_size=MAX_RECORD_BYTES,
            metrics_enabled=False,
        )
    except KafkaError as error:
        raise SendError(security.why(error)) from error
