"""The producer against kafka-python's own queue, and the ledger: nothing lost, nothing invented, no error swallowed."""

import threading
from collections import Counter
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaTimeoutError

from spark_jobs.messaging import topics
from spark_jobs.sample import producer as producing
from spark_jobs.sample import producer_ledger
from spark_jobs.sample.block import Block, facts
from spark_jobs.sample.producer import Producer, SendError
from spark_jobs.sample.producer_ledger import PRODUCER_LEDGER, Ledger
from tests.fake_kafka import Kafka


def block(rows: list[tuple[bytes | None, bytes | None]], topic: str = "t") -> Block:
    return facts(topic, [k for k, _ in rows], [v for _, v in rows])


ROWS = st.lists(st.tuples(st.none() | st.binary(max_size=3), st.none() | st.binary(max_size=40)), max_size=60)


@given(st.lists(ROWS, max_size=4), st.lists(st.tuples(st.text(max_size=4), st.binary(max_size=4)), max_size=2))
def test_every_record_is_sent_once_and_is_where_the_answer_says(blocks, headers):
    kafka, sent = Kafka(), []
    with Producer(sent.append, {"t": headers}, kafka) as producer:
        for rows in blocks:
            producer.send(block(rows))
    places = [
        ((one.partition, one.offset + i), (key, value, headers))
        for one in sent
        for i, (key, value) in enumerate(zip(one.block.keys, one.block.values, strict=True))
    ]
    logged = {(place[1], i): record for place, log in kafka.log.items() for i, record in enumerate(log)}
    assert dict(places) == logged and len(places) == producer.records == sum(map(len, blocks))
    everything = Counter((key, value) for rows in blocks for key, value in rows)
    assert Counter((key, value) for key, value, _ in logged.values()) == everything


def test_records_of_one_key_keep_their_order():
    kafka = Kafka()
    with Producer(lambda sent: None, client=kafka) as producer:
        for start in range(0, 1000, 100):
            producer.send(block([(b"%d" % (i % 7), b"%d" % i) for i in range(start, start + 100)]))
    for log in kafka.log.values():
        for key in {record[0] for record in log}:
            values = [int(value) for k, value, _ in log if k == key]
            assert values == sorted(values)


class Away(Kafka):
    """A broker that does not tell a topic's partitions for a while."""

    def __init__(self, times):
        super().__init__()
        self.times = times

    def partitions_for(self, topic):
        self.times -= 1
        if self.times >= 0:
            raise KafkaTimeoutError("no metadata")
        return super().partitions_for(topic)


def test_a_broker_that_is_away_is_waited_for_and_a_missing_topic_is_not(monkeypatch):
    monkeypatch.setattr(topics, "is_there", lambda topic: None)
    with Producer(lambda sent: None, client=Away(3)) as producer:
        producer.send(block([(b"k", b"v")]))
    assert producer.records == 1
    monkeypatch.setattr(producing, "DELIVERY_SECONDS", -1)
    with pytest.raises(SendError, match="topic t: KafkaTimeoutError"):
        Producer(lambda sent: None, client=Away(3)).send(block([(b"k", b"v")]))
    monkeypatch.setattr(topics, "is_there", lambda topic: False)
    with pytest.raises(SendError, match="there is no topic t; `tidemark topics create`"):
        Producer(lambda sent: None, client=Away(1)).send(block([(b"k", b"v")]))


def test_batches_stay_below_the_limit_except_for_a_record_that_is_larger_itself(monkeypatch):
    monkeypatch.setattr(producing, "MAX_BATCH_BYTES", 1000)
    kafka = Kafka()
    with Producer(lambda sent: None, client=kafka) as producer:
        producer.send(block([(b"k", b"x" * size) for size in [100] * 30 + [5000] + [900, 900, 1]]))
    assert max(size for size in kafka.sizes if size < 5000) <= 1000 + 61  # and the batch's own header
    assert sum(size > 5000 for size in kafka.sizes) == 1 and producer.records == 34


def test_a_refused_batch_is_an_error_and_in_no_ledger_while_the_others_are(tmp_path):
    kafka = Kafka(lambda key: "refuse" if key == b"bad" else "take")
    with pytest.raises(SendError, match="3 record"), Ledger(tmp_path / "run") as ledger:  # noqa: SIM117
        with Producer(ledger.add, client=kafka) as producer:
            producer.send(block([(b"good", b"1")]))
            producer.send(block([(b"bad", b"2")] * 3))
    assert pq.read_table(tmp_path / "run")["key"].to_pylist() == [b"good"]


def test_a_failure_seen_only_at_the_end_is_still_an_error():
    kafka = Kafka(lambda key: "refuse")
    kafka._sender = SimpleNamespace(wakeup=lambda: None)
    with pytest.raises(SendError), Producer(lambda sent: None, client=kafka) as producer:
        producer.send(block([(b"k", b"1")]))
        kafka.take_all()


def test_leaving_waits_for_the_last_answers():
    kafka, sent = Kafka(), []
    kafka._sender = SimpleNamespace(wakeup=lambda: None)
    with Producer(sent.append, client=kafka) as producer:
        producer.send(block([(b"k", b"1")]))
        assert not sent
        later = threading.Timer(0.05, kafka.take_all)
        later.start()
    assert len(sent) == producer.records == 1


def test_silence_is_an_error_not_a_wait_without_end(monkeypatch):
    monkeypatch.setattr(producing, "DELIVERY_SECONDS", 0.05)
    kafka = Kafka(lambda key: "mute")
    producer = Producer(lambda sent: None, client=kafka)
    producer.send(block([(b"k", b"1")]))
    with pytest.raises(SendError, match="no answer"):
        producer.flush(0.05)


def test_an_answer_without_offset_counts_as_unlisted_and_leaves_the_ledger_right(tmp_path):
    kafka = Kafka(lambda key: "forget")
    with Ledger(tmp_path / "run") as ledger, Producer(ledger.add, client=kafka) as producer:
        producer.send(block([(b"k", b"1")]))
    assert (producer.unlisted, producer.records) == (1, 0)
    assert not list((tmp_path / "run").iterdir())


def test_the_ledger_says_what_each_record_is_and_where(tmp_path):
    kafka = Kafka()
    mixed = Block(
        "t", [b"a", None, b"a"], [b"1", None, b"1"], ["fact", "rejected", "duplicate"], [None, "null_value", None]
    )
    headers = {"t": [("schema_version", b"1"), ("from", b"here")]}
    with Ledger(tmp_path / "run") as ledger, Producer(ledger.add, headers, kafka) as producer:
        producer.send(block([(b"a", b"0"), (b"b", b"0")]))
        producer.send(mixed)
    table = pq.read_table(tmp_path / "run").select(PRODUCER_LEDGER.names)
    assert table.schema.equals(PRODUCER_LEDGER)
    rows = {(r["partition"], r["offset"]): r for r in table.to_pylist()}
    for (partition, offset), row in rows.items():
        named = [(header["key"], header["value"]) for header in row["headers"]]
        assert kafka.log["t", partition][offset] == (row["key"], row["value"], named)
    assert len(rows) == 5
    assert sorted((r["outcome"], r["reason"]) for r in rows.values() if r["value"] != b"0") == [
        ("duplicate", None), ("fact", None), ("rejected", "null_value"),
    ]  # fmt: skip


def test_memory_is_bounded_by_writing_file_after_file(tmp_path, monkeypatch):
    monkeypatch.setattr(producer_ledger, "ROWS", 10)
    with Ledger(tmp_path / "run") as ledger, Producer(ledger.add, client=Kafka()) as producer:
        for i in range(20):
            producer.send(block([(b"k", b"%d" % i)] * 3))
            assert ledger._rows < 10
    files = sorted((tmp_path / "run").iterdir())
    assert [f.name for f in files] == [f"{n:04}.parquet" for n in range(1, 6)]
    assert pq.read_table(tmp_path / "run").num_rows == 60


def test_a_crash_while_writing_leaves_no_file_that_a_reader_takes(tmp_path, monkeypatch):
    settings = SimpleNamespace(producer_ledger=tmp_path)
    monkeypatch.setattr(producer_ledger, "settings", lambda: settings)

    def half(table, path, **options):
        path.write_bytes(b"PAR1")
        raise KeyboardInterrupt

    monkeypatch.setattr(producer_ledger.pq, "write_table", half)
    with pytest.raises(KeyboardInterrupt), Ledger(tmp_path / "run") as ledger:  # noqa: SIM117
        with Producer(ledger.add, client=Kafka()) as producer:
            producer.send(block([(b"k", b"1")]))
    assert producer_ledger.files() == []
