"""What Kafka still has: the offsets of each partition, and the records of a gap.

broker -> Offsets, Count (for completeness.offsets_are_in_the_log_once). Reads committed records, commits nothing.
"""

import time
from contextlib import closing

import duckdb

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.quality.verification import completeness
from spark_jobs.quality.verification.completeness import Gap, Offsets
from spark_jobs.quality.verification.findings import Finding, Unable
from spark_jobs.settings import settings

SECONDS_PER_GAP = 20.0
MOST_OFFSETS = 1_000_000


def offsets_are_in_the_log_once(con: duckdb.DuckDBPyConnection) -> Finding:
    """The check of `completeness` with what Kafka has now. Raises Unable where it does not answer."""
    from kafka.errors import KafkaError

    from spark_jobs.messaging.broker import Broker
    from spark_jobs.messaging.security import KafkaRefused

    try:
        broker = Broker(project_contracts().topics)
    except (KafkaRefused, KafkaError, OSError, AssertionError) as error:
        raise Unable(f"Kafka at {settings().kafka} does not answer: {error}") from error
    with closing(broker):
        available = broker.available(broker.partitions()[1])
        return completeness.offsets_are_in_the_log_once(con, available, lambda gap: count(gap, available))


def count(gap: Gap, available: Offsets) -> int | None:
    """Committed records in the gap; None where Kafka has dropped it, or where it is too long to read."""
    from kafka import KafkaConsumer, TopicPartition

    from spark_jobs.messaging import security

    topic, partition, start, until = gap
    earliest, _ = available.get((topic, partition), (until, until))
    if earliest >= until or until - start > MOST_OFFSETS:
        return None
    part, records, give_up = TopicPartition(topic, partition), 0, time.monotonic() + SECONDS_PER_GAP
    with closing(
        KafkaConsumer(**security.client(), enable_auto_commit=False, isolation_level="read_committed")
    ) as consumer:
        consumer.assign([part])
        consumer.seek(part, max(start, earliest))
        while consumer.position(part) < until and time.monotonic() < give_up:
            for batch in consumer.poll(timeout_ms=500).values():
                records += sum(record.offset < until for record in batch)
        is_whole = earliest <= start and consumer.position(part) >= until
    return records if records or is_whole else None
