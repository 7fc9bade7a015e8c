"""Alarms that are judged from Kafka: a real broker, and a log that is landed by hand, so that its end can stand still.

The broker is one of its own, without the other parts: nothing reads from it but what a test reads.
"""

import datetime as dt
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.alarms import kind_of
from spark_jobs.ledger.store import Store
from spark_jobs.messaging import topics
from spark_jobs.messaging.broker import Broker
from spark_jobs.settings import ROOT, settings
from spark_jobs.speed import alarms, continuity, land, partials_table
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.speed.status import Status
from spark_jobs.speed.watch import Watch, look_once
from spark_jobs.storage.fencing import Fence
from tests import micro_batches
from tests.platform import await_true, running

pytestmark = [pytest.mark.platform, pytest.mark.timeout(600)]

AN_HOUR, SIX_DAYS = 3600, 6 * 24 * 3600
TOPICS = iter(one.topic for one in project_contracts() if not one.compacted)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """The ledger beside a broker and an empty log."""
    patch = pytest.MonkeyPatch()
    with running(ROOT, "broker") as platform:
        for name, value in platform.environment.items():
            patch.setenv(name, value)
        settings.cache_clear()
        topics.create(project_contracts())
        partials_table.create([])
        read_all()
        with closing(ledger.open()) as opened:
            yield opened
        patch.undo()
        settings.cache_clear()


@pytest.fixture
def topic(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One that no other test has touched."""
    yield next(TOPICS)
    monkeypatch.undo()
    settings.cache_clear()


def send(topic: str, age: float = 0) -> None:
    """A record that says it was written so many seconds ago."""
    with closing(KafkaProducer(bootstrap_servers=settings().kafka)) as producer:
        producer.send(topic, b"{}", timestamp_ms=int((time.time() - age) * 1000), partition=0).get(30)


def read_all(accepted_loss: str | None = None) -> None:
    """One lsn more, with answers: the log follows all that Kafka has."""
    end = land.log_end()
    with closing(Broker(project_contracts().topics)) as broker:
        topic_ids, partitions = broker.partitions()
        offsets = broker.available(partitions)
    ranges = [
        continuity.Range(*place, end.expects(place, first), last) for place, (first, last) in sorted(offsets.items())
    ]
    control = land.control(1, ranges, topic_ids, dt.datetime.now(dt.UTC))
    writer, nothing = InProcessWriter(EVERY_SCHEMA, Fence(1)), row_types.RECORD.empty_table()
    writer.land(nothing, end.lsn + 1, {**control, "accepted_loss": accepted_loss})
    micro_batches.compute(writer, nothing, end.lsn + 1, [], IdWindow(60, 60), dt.datetime.now(dt.UTC))


def ringing(store: Store) -> set[str]:
    """The names of what rings of Kafka."""
    look_once(store)
    of_kafka = (*alarms.OF_KAFKA, alarms.UNREACHABLE)
    return {alarm.name for alarm in store.raised_alarms() if kind_of(alarm.name) in of_kafka}


def test_c3_lag_rings_by_the_age_of_the_oldest_unread_record_until_it_is_read(store: Store, topic: str) -> None:
    """However long ago the last micro-batch was: an idle platform has none."""
    send(topic)
    assert ringing(store) == set(), "it is young"
    read_all()
    send(topic, age=AN_HOUR)
    assert f"lag: {topic}" in ringing(store)
    read_all()
    assert ringing(store) == set()


def test_c3_retention_rings_when_the_oldest_unread_record_is_about_to_leave_kafka(store: Store, topic: str) -> None:
    send(topic, age=SIX_DAYS)
    assert {f"lag: {topic}", f"retention: {topic}"} <= ringing(store)
    read_all()
    assert ringing(store) == set()


def test_c3_freshness_rings_while_records_wait_and_no_answer_is_new(
    store: Store, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(topic, age=AN_HOUR)
    assert ringing(store) == {f"lag: {topic}"}, "the newest answer is of this minute"
    monkeypatch.setenv("TIDEMARK_FRESHNESS_ALARM_SECONDS", "0")
    settings.cache_clear()
    assert ringing(store) == {f"lag: {topic}", "freshness"}
    read_all()
    assert ringing(store) == set()


def test_i14_a_hole_rings_before_anybody_reads_up_to_it(store: Store, topic: str) -> None:
    send(topic)
    with closing(KafkaAdminClient(bootstrap_servers=settings().kafka)) as admin:
        admin.delete_records({TopicPartition(topic, 0): 1})
    assert ringing(store) == {f"hole: {topic} 0"}
    read_all(accepted_loss="offset 0")
    assert ringing(store) == set()


def test_kafka_that_does_not_answer_is_an_alarm_and_clears_no_other(
    store: Store, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(topic, age=AN_HOUR)
    ringing(store)
    monkeypatch.setenv("TIDEMARK_KAFKA_SERVERS", "127.0.0.1:1")
    settings.cache_clear()
    assert ringing(store) == {"kafka", f"lag: {topic}"}
    monkeypatch.undo()
    settings.cache_clear()
    read_all()
    assert ringing(store) == set()


def test_c3_lag_is_told_in_the_middle_of_a_micro_batch(store: Store, topic: str) -> None:
    """The watch waits for no turn; a long micro-batch and its backlog are seen while it is at work."""
    status = Status(store)
    status.batch_begins()
    with closing(Watch(store, status, land.log_end)):
        for _ in range(3):
            send(topic)

        def told() -> bool:
            beat = store.heartbeat("speed")
            return beat is not None and beat.payload.get("lag_by_topic", {}).get(topic) == 3

        await_true(told, 30, "the lag is not told")
        assert store.heartbeat("speed").payload["batch_began_at"]  # type: ignore[union-attr]
    read_all()
