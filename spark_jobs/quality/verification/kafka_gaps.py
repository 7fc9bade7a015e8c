"""What Kafka still has: the offsets of each partition, and the records of a gap.

broker -> Available, Count (for completeness.offsets_are_in_the_log_once). Reads committed records, commits nothing.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from spark_jobs.quality.verification.completeness import Available, Count, Gap
from spark_jobs.quality.verification.findings import Unable
from spark_jobs.settings import settings

SECONDS_PER_GAP = 20.0
MOST_OFFSETS = 1_000_000


@contextmanager
def broker(topics: tuple[str, ...]) -> Iterator[tuple[Available, Count]]:
    """Available offsets of the topics that exist, and the counter of gaps. Unable where Kafka does not answer."""
    from kafka.errors import KafkaError

    from spark_jobs.messaging.broker import Broker

    try:
        asked = Broker(topics)
    except (KafkaError, OSError, AssertionError) as error:
        raise Unable(f"Kafka at {settings().kafka} does not answer: {error}") from error
    try:
        available = asked.available(asked.partitions()[1])
        yield available, lambda gap: count(gap, available)
    finally:
        asked.close()


def count(gap: Gap, available: Available) -> int | None:
    """Committed records in the gap; None where Kafka has dropped it, or where it is too long to read."""
    from kafka import KafkaConsumer, TopicPartition

    topic, partition, start, until = gap
    earliest, _ = available.get((topic, partition), (until, until))
    if earliest >= until or until - start > MOST_OFFSETS:
        return None
    consumer = KafkaConsumer(
        bootstrap_servers=settings().kafka, enable_auto_commit=False, isolation_level="read_committed"
    )
    part, found, give_up = TopicPartition(topic, partition), 0, time.monotonic() + SECONDS_PER_GAP
    try:
        consumer.assign([part])
        consumer.seek(part, max(start, earliest))
        while consumer.position(part) < until and time.monotonic() < give_up:
            batches = consumer.poll(timeout_ms=500)
            found += sum(record.offset < until for records in batches.values() for record in records)
        is_whole = earliest <= start and consumer.position(part) >= until
    finally:
        consumer.close()
    return found if found or is_whole else None
