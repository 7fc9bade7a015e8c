"""I14: what Kafka has lost stops the stream by name; it goes on by `speed recover --accept`, without that alone."""

from collections.abc import Callable

import pytest
from kafka import TopicPartition
from kafka.admin import NewPartitions, NewTopic

from tests.faults.conftest import Stream
from tests.faults.test_crash_points import counted, landed
from tests.platform import await_true

pytestmark = [pytest.mark.fault, pytest.mark.platform]
TOPIC = "order_placed"


def expire_unread(stream: Stream) -> int:
    """Retention takes records before they are read."""
    stream.send(7, partition=0)
    ends = stream.admin.delete_records({TopicPartition(TOPIC, 0): -1})
    assert ends
    stream.send(2, partition=0)
    return 7


def recreate(stream: Stream) -> int:
    stream.admin.delete_topics([TOPIC])
    await_true(lambda: TOPIC not in stream.admin.list_topics(), 60, "the topic does not go")
    stream.admin.create_topics([NewTopic(name=TOPIC, num_partitions=2, replication_factor=1)])
    await_true(lambda: TOPIC in stream.admin.list_topics(), 60, "the topic does not come")
    stream.send(5)
    return 0


def add_a_partition_and_expire_it(stream: Stream) -> int:
    number = len(stream.admin.describe_topics([TOPIC])[0]["partitions"])
    stream.admin.create_partitions({TOPIC: NewPartitions(total_count=number + 1)})
    stream.send(4, partition=number)
    stream.admin.delete_records({TopicPartition(TOPIC, number): -1})
    stream.send(3, partition=number)
    return 4


@pytest.mark.parametrize(
    ("hole", "named"),
    [
        (expire_unread, "Kafka has"),
        (recreate, "was recreated"),
        (add_a_partition_and_expire_it, "Kafka has"),
    ],
)
def test_i14_a_hole_stops_the_stream_and_is_passed_by_consent(
    stream: Stream, hole: Callable[[Stream], int], named: str
) -> None:
    stream.send(10)
    stream.catch_up()
    before, counted_before = len(landed(stream)), counted(stream, "orders_by_day_v1", "orders")
    sent = stream.sent
    lost = hole(stream)
    with stream.application() as process:
        said, _ = process.communicate(timeout=300)
    assert process.returncode == 1 and named in said, said[-3000:]
    assert len(landed(stream)) == before, "nothing was landed"
    shown = stream.platform.run("speed", "recover")
    assert shown.returncode == 1 and TOPIC in shown.stdout and "Nothing was changed" in shown.stdout
    stream.platform.tidemark("speed", "recover", "--accept")
    stream.catch_up()
    expected = stream.sent - sent - lost
    assert len(landed(stream)) - before == expected
    assert counted(stream, "orders_by_day_v1", "orders") - counted_before == expected
