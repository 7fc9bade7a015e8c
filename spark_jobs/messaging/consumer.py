"""Read stretches of Kafka's partitions by librdkafka, whatever timestamps their records have.

(topic, partition) -> offsets [first, until) -> Arrow batches with the columns of row_types.RECORD, each of one topic.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import methodcaller
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from kafka.errors import TopicAuthorizationFailedError

from spark_jobs.contracts import row_types
from spark_jobs.contracts.row_types import Partition
from spark_jobs.messaging import security
from spark_jobs.messaging.security import KafkaRefused

Stretch = tuple[int, int]
"""Offsets [first, until)."""
Row = tuple[int, int, int, bytes | None, bytes | None, Sequence[tuple[str, bytes | None]]]
"""Partition, offset, timestamp in milliseconds, key, value, headers."""
FURTHEST_MS = 9_223_372_000_000_000
"""The last whole millisecond, and before 1970 the first, that all engines know; what is beyond stands there."""
OPTIONS = {
    "group.id": "tidemark",  # it must have one; nothing is committed
    "enable.auto.commit": False,
    "auto.offset.reset": "error",  # a stretch that Kafka no longer has is an error, and no other stretch
    "isolation.level": "read_committed",
    "enable.partition.eof": True,  # the last offsets of a stretch may have no record: a marker, or what was aborted
    "allow.auto.create.topics": False,
    "check.crcs": True,
    "reconnect.backoff.ms": 250,
    "reconnect.backoff.max.ms": 1000,
    "log_level": 2,  # each attempt to reach a broker that is away is a line; what lasts is raised
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 10,
    "queued.max.messages.kbytes": 4096,  # what is fetched past a stretch is fetched in vain
}
POLLED, POLL_SECONDS = 100, 0.01
"""Messages at once: each may have a megabyte."""
ROWS, BYTES = 10_000, 16 << 20
"""Of a batch, and of all that wait to become one."""
SILENT_SECONDS, REFUSED_SECONDS = 120.0, 5.0
"""How long nothing may come; and where the broker does not let us in."""
GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
HEADERS = methodcaller("headers")
"""Its call is checked; of another the library's error for what is no UTF-8 would be met by the call after the next."""
NOT_ALLOWED = KafkaError.TOPIC_AUTHORIZATION_FAILED
NOT_LET_IN = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)


class ReadError(RuntimeError):
    """Kafka does not give a stretch; the text names the partition and the offset."""


class UnreadableHeader(RuntimeError):
    """The name of a header is no UTF-8. Kafka's Java client replaces what it cannot read."""


def is_unreadable(error: Exception) -> bool:
    """Whether it is an UnreadableHeader, here or in a task of Spark."""
    return UnreadableHeader.__name__ in f"{type(error).__name__}: {error}"


class Client:
    """A connection, for one thread. options: `security.native`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._consumer = Consumer({**options, **OPTIONS, "error_cb": self._failed})
        self._failure: KafkaError | None = None  # the last of a connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._consumer.close()

    def records(self, stretches: Mapping[Partition, Stretch], lsn: int) -> Iterator[pa.RecordBatch]:
        """The committed records of the stretches, as of this lsn; of a partition in the order of their offsets.

        Raises ReadError, KafkaRefused, UnreadableHeader.
        """
        left = {place: (first, until) for place, (first, until) in stretches.items() if first < until}
        if not left:
            return
        self._consumer.assign([TopicPartition(*place, first) for place, (first, _) in left.items()])
        held, heard, self._failure = _Held(lsn), time.monotonic(), None
        try:
            while left:
                before = [*left]
                took = [_took(message, left, held) for message in self._consumer.consume(POLLED, POLL_SECONDS)]
                if complete := [TopicPartition(*place) for place in before if place not in left]:
                    self._consumer.incremental_unassign(complete)
                if any(took):
                    heard = time.monotonic()
                self._refuse_silence(time.monotonic() - heard, left)
                yield from held.full()
            yield from held.all()
        finally:
            self._consumer.unassign()
            while self._consumer.consume(POLLED, 0):
                pass  # what has come already is no part of the next stretches

    def _failed(self, error: KafkaError) -> None:
        """Most of what a connection meets goes away, and the library tries again."""
        if self._failure is None or self._failure.code() not in NOT_LET_IN:
            self._failure = error

    def _refuse_silence(self, seconds: float, of: Mapping[Partition, Stretch]) -> None:
        failure = self._failure
        if failure and (failure.code() in NOT_LET_IN or failure.fatal()) and seconds > REFUSED_SECONDS:
            raise KafkaRefused(security.why(KafkaException(failure)))
        if seconds > SILENT_SECONDS:
            met = f": {failure.str()}" if failure else ""
            raise ReadError(f"nothing comes of {sorted(of)} for {SILENT_SECONDS:g} s{met}")


def _took(message: Any, left: dict[Partition, Stretch], held: "_Held") -> bool:
    """Whether it brings a stretch on. left: what is still to come; a stretch that is complete is taken out."""
    place, offset, error = (message.topic(), message.partition()), message.offset(), message.error()
    if error is not None and error.code() != KafkaError._PARTITION_EOF:
        _refuse(error, message)
        return False
    if place not in left:
        return False  # fetched before its stretch was complete
    first, until = left[place]
    if offset < first:
        raise ReadError(f"{place[0]} partition {place[1]}: offset {offset} comes where {first} is next")
    if error is None and offset < until:
        held.add(message)
    left[place] = (offset + (error is None), until)  # the end of a partition has the offset that comes next
    if left[place][0] >= until:
        del left[place]
    return True


def _refuse(error: KafkaError, message: Any) -> None:
    """Raise what does not go away by waiting."""
    if error.code() in GONE:
        place = f"{message.topic()} partition {message.partition()}"
        raise ReadError(f"{place}: Kafka does not have offset {message.offset()}: {error.str()}")
    if error.code() == NOT_ALLOWED:
        raise KafkaRefused(security.why(TopicAuthorizationFailedError(), message.topic()))


class _Held:
    """Rows by topic, until they are a batch: many topics take turns in what Kafka sends."""

    def __init__(self, lsn: int) -> None:
        self._lsn, self._bytes = lsn, Counter[str]()
        self._rows: dict[str, list[Row]] = defaultdict(list)

    def add(self, message: Any) -> None:
        key, value = message.key(), message.value()
        try:
            headers = HEADERS(message) or ()
        except (UnicodeDecodeError, SystemError) as error:
            place = f"{message.topic()} partition {message.partition()} offset {message.offset()}"
            raise UnreadableHeader(f"{place}: the name of a header is no UTF-8") from error
        row = (message.partition(), message.offset(), message.timestamp()[1], key, value, headers)
        self._rows[message.topic()].append(row)
        size = len(key or b"") + len(value or b"") + sum(len(name) + len(v or b"") for name, v in headers)
        self._bytes[message.topic()] += size

    def full(self) -> Iterator[pa.RecordBatch]:
        """The batches that are large enough."""
        if self._bytes.total() >= BYTES:
            yield from self.all()
        yield from self._taken([topic for topic, rows in self._rows.items() if len(rows) >= ROWS])

    def all(self) -> Iterator[pa.RecordBatch]:
        yield from self._taken([*self._rows])

    def _taken(self, topics: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for topic in topics:
            del self._bytes[topic]
            yield _batch(topic, self._rows.pop(topic), self._lsn)


def _batch(topic: str, rows: Sequence[Row], lsn: int) -> pa.RecordBatch:
    partitions, offsets, timestamps, keys, values, headers = zip(*rows, strict=True)
    milliseconds = np.clip(np.array(timestamps, np.int64), -FURTHEST_MS, FURTHEST_MS)
    columns = {
        "lsn": pa.repeat(lsn, len(rows)),
        "topic": pa.repeat(topic, len(rows)),
        "partition": partitions,
        "offset": offsets,
        "timestamp": milliseconds * 1_000,
        "key": keys,
        "value": values,
        "headers": _headers(headers),
    }
    schema = pa.schema(row_types.RECORD)
    return pa.RecordBatch.from_arrays([pa.array(columns[of.name], of.type) for of in schema], schema=schema)


def _headers(headers: Sequence[Sequence[tuple[str, bytes | None]]]) -> pa.ListArray:
    kind = pa.schema(row_types.RECORD).field("headers").type
    flat = [header for of_one in headers for header in of_one]
    fields = [kind.value_type.field(number) for number in range(2)]
    parts = [pa.array([header[number] for header in flat], field.type) for number, field in enumerate(fields)]
    ends = np.cumsum([0, *map(len, headers)], dtype=np.int32)
    none = pa.array([not of_one for of_one in headers])
    return pa.ListArray.from_arrays(ends, pa.StructArray.from_arrays(parts, fields=fields), kind, mask=none)
