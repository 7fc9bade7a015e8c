"""What a micro-batch takes, as librdkafka reads it: what kafka-python reads, and each refusal by its name."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition

from spark_jobs.contracts import row_types
from spark_jobs.messaging import consumer, security
from spark_jobs.messaging.consumer import Client, ReadError, Stretch, UnreadableHeader
from spark_jobs.messaging.security import KafkaRefused
from spark_jobs.settings import settings
from spark_jobs.speed import sources
from spark_jobs.speed.continuity import Range
from tests import unreadable_header
from tests.secured_kafka import SecuredKafka
from tests.spark.conftest import RIGHTS, SEEN, Use, set_all

pytestmark = pytest.mark.spark
PLACE = (TOPIC, _) = ("sentence_posted", 0)
OTHER = "ad_shown"
HEADERS: list[tuple[str, str | bytes | None]] = [("a", b"1"), ("none", None), ("a", b"2"), ("ü", b"")]


@pytest.fixture(scope="module")
def written(kafka: SecuredKafka) -> Iterator[Stretch]:
    """Offsets of a partition with records of each kind; after the last that anybody gets come others."""
    kafka.allow(TOPIC, OTHER, operations=RIGHTS)
    with pytest.MonkeyPatch.context() as patch:
        set_all(patch, kafka.doors["mutual"])
        for compression in ("none", "gzip", "snappy", "lz4", "zstd"):
            producer = Producer({**security.native(), "compression.type": compression})
            for number in range(40):
                producer.produce(TOPIC, b"%d" % number * 30, b"key" if number % 2 else None, 0, headers=HEADERS)
            producer.produce(TOPIC, None, b"a tombstone", 0)
            producer.flush()
        sender = Producer({**security.native(), "transactional.id": "sender"})
        sender.init_transactions()
        for end in (sender.commit_transaction, sender.abort_transaction) * 2:
            sender.begin_transaction()
            for number in range(7):
                sender.produce(TOPIC, f"{end.__name__} {number}".encode(), None, 0)
            sender.flush()
            end()
        with closing(_by_kafka_python()) as client:
            until = client.end_offsets([TopicPartition(*PLACE)])[TopicPartition(*PLACE)]
    settings.cache_clear()
    yield 0, until


def _by_kafka_python() -> Any:
    return KafkaConsumer(**security.client(), isolation_level="read_committed", enable_auto_commit=False)


def rows(*stretches: Stretch) -> list[dict[str, Any]]:
    with Client(security.native()) as client:
        read = [batch for stretch in stretches for batch in client.records({PLACE: stretch}, 5)]
    table = pa.Table.from_batches(read, pa.schema(row_types.RECORD))
    return table.set_column(4, "timestamp", table["timestamp"].cast(pa.int64())).to_pylist()


def test_it_reads_what_kafka_python_reads(use: Use, written: Stretch) -> None:
    use("secured")
    expected, at = [], TopicPartition(*PLACE)
    with closing(_by_kafka_python()) as client:
        client.assign([at])
        client.seek(at, 0)
        while client.position(at) < written[1]:
            expected += client.poll(timeout_ms=1000).get(at, [])
    assert len(expected) == 5 * 41 + 2 * 7 and expected[-1].offset < written[1] - 8, "the last were aborted"
    assert rows(written) == [
        {
            "lsn": 5, "topic": TOPIC, "partition": 0, "offset": one.offset, "timestamp": one.timestamp * 1000,
            "key": one.key, "value": one.value,
            "headers": [{"key": name, "value": value} for name, value in one.headers] or None,
        }
        for one in expected
    ]  # fmt: skip


def test_a_stretch_may_be_cut_anywhere(use: Use, written: Stretch) -> None:
    use("secured")
    whole = rows(written)
    for cut in (0, 1, 41, 100, written[1] - 20, written[1] - 1, written[1]):
        assert rows((0, cut), (cut, written[1])) == whole, cut


def test_a_connection_that_stays_gives_each_stretch_alone(use: Use, written: Stretch) -> None:
    use("secured")
    whole, random = rows(written), Random(7)
    with Client(security.native()) as client:
        for _ in range(60):
            first, until = sorted(random.choices(range(written[1] + 1), k=2))
            batches = client.records({PLACE: (first, until)}, 5)
            if random.random() < 0.2:
                next(batches, None)  # and no more of it
                batches.close()
                continue
            read = [offset for batch in batches for offset in batch["offset"].to_pylist()]
            assert read == [row["offset"] for row in whole if first <= row["offset"] < until]


def test_what_kafka_does_not_have_is_an_error_and_no_other_stretch(use: Use, written: Stretch) -> None:
    use("secured")
    with pytest.raises(ReadError, match=rf"{TOPIC} partition 0: Kafka does not have offset {written[1] + 50}"):
        rows((written[1] + 50, written[1] + 60))


def test_a_partition_that_is_silent_is_named(use: Use, written: Stretch, monkeypatch: pytest.MonkeyPatch) -> None:
    use("secured")
    monkeypatch.setattr(consumer, "SILENT_SECONDS", 2)
    with pytest.raises(ReadError, match=f"nothing comes of .*{TOPIC}.* for 2 s"):
        rows((0, written[1] + 10))


def test_a_header_that_only_java_can_read_is_named(use: Use, written: Stretch) -> None:
    use("mutual")
    sent = unreadable_header.send(OTHER, b"{}")
    place, first = (OTHER, sent.partition), sent.offset
    use("secured")
    with Client(security.native()) as client, pytest.raises(UnreadableHeader, match=f"offset {first}") as unreadable:
        [*client.records({place: (first, first + 1)}, 1)]
    assert consumer.is_unreadable(unreadable.value)
    assert consumer.is_unreadable(RuntimeError(f"in a task: {unreadable.typename}: {unreadable.value}"))


def test_c1_refusals_say_what_is_missing(use: Use, written: Stretch, tmp_path: Path) -> None:
    use("secured")
    with Client(security.native()) as client, pytest.raises(KafkaRefused, match=f"topic {SEEN}.*ACL"):
        [*client.records({(SEEN, 0): (0, 5)}, 1)]
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    use("secured", kafka_password_file=wrong)
    with pytest.raises(KafkaRefused, match="does not let User:tidemark in"):
        rows(written)
    use("expired")
    with pytest.raises(KafkaRefused, match="certificate"):
        rows(written)


def test_b4_records_that_may_be_too_large_together_are_left_to_the_workers(use: Use, written: Stretch) -> None:
    use("secured", in_process_mb=1)
    ranges = [Range(*PLACE, *written)]
    with Client(security.native()) as client:
        taken = sources.few(client, ranges, 5)
        assert (
            taken is not None and taken.num_rows == len(rows(written)) and taken.schema == pa.schema(row_types.RECORD)
        )
        nothing = sources.few(client, [Range(*PLACE, 3, 3)], 5)
        assert nothing is not None and nothing.schema == taken.schema and not nothing.num_rows
        use("mutual", in_process_mb=1)
        large = Producer(security.native())
        for number in range(3):
            key, value, header = (b"a" * 400_000 if number == of else None for of in range(3))
            large.produce(TOPIC, value, key, 0, headers=[("h", header)])
        large.flush()
        assert sources.few(client, [Range(*PLACE, written[1], written[1] + 3)], 5) is None
        assert sources.few(client, ranges, 5) == taken, "what was not taken is in nobody's way"
        use("secured", in_process_records=100)
        assert sources.few(client, ranges, 5) is None
