"""Read a stretch of one Kafka partition by kafka-python, whatever timestamps its records have.

(topic, partition), offsets -> Arrow batches with the columns of row_types.RECORD.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from spark_jobs.contracts import row_types
from spark_jobs.contracts.row_types import Partition
from spark_jobs.messaging import security

FURTHEST_MS = 9_223_372_000_000_000
"""The last whole millisecond, and before 1970 the first, that all engines know; what is beyond stands there."""
POLLED = 10_000
SILENT_SECONDS = 120.0


def records(place: Partition, first: int, until: int, lsn: int) -> Iterator[pa.RecordBatch]:
    """The committed records with offsets [first, until), as of this lsn. Raises KafkaError."""
    partition, heard = TopicPartition(*place), time.monotonic()
    with closing(_connect()) as client:
        client.assign([partition])
        client.seek(partition, first)
        while (position := client.position(partition)) < until:
            polled = client.poll(timeout_ms=1_000, max_records=POLLED).get(partition, ())
            rows = [_row(record, lsn) for record in polled if record.offset < until]
            if rows:
                yield pa.RecordBatch.from_pylist(rows, schema=row_types.RECORD)
            if client.position(partition) > position:
                heard = time.monotonic()
            elif time.monotonic() - heard > SILENT_SECONDS:
                raise KafkaTimeoutError(f"{place[0]} partition {place[1]}: nothing comes at offset {position}")


def _row(record: Any, lsn: int) -> dict[str, Any]:
    micros = 1_000 * min(max(record.timestamp, -FURTHEST_MS), FURTHEST_MS)
    headers = [{"key": name, "value": value} for name, value in record.headers] or None
    place = {"lsn": lsn, "topic": record.topic, "partition": record.partition, "offset": record.offset}
    return {**place, "timestamp": micros, "key": record.key, "value": record.value, "headers": headers}


def _connect() -> Any:
    return KafkaConsumer(
        **security.client(),
        enable_auto_commit=False,
        auto_offset_reset="none",  # a stretch that Kafka no longer has is an error, and no other stretch
        isolation_level="read_committed",
        metrics_enabled=False,
    )
