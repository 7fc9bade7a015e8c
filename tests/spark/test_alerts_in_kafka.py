"""Alerts on their way to a Kafka that asks for logins."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaConsumer

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.messaging import security
from spark_jobs.messaging.producer import Producer
from spark_jobs.speed import alerts
from tests.alerting import VIEW, Alarms, payment, rows
from tests.kafka_topics import all_of
from tests.secured_kafka import SecuredKafka
from tests.spark.conftest import RIGHTS, Use

pytestmark = pytest.mark.spark
TOPIC = "alerts.payments"


@pytest.fixture
def store(kafka: SecuredKafka, use: Use, tmp_path: Path) -> Iterator[Store]:
    kafka.allow(TOPIC, operations=RIGHTS)
    use("mutual", home=tmp_path)
    with closing(ledger.open()) as opened:
        yield opened


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Producer]:
    """Those that were asked for."""
    made: list[Producer] = []

    class Noted(Producer):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    monkeypatch.setattr(alerts, "Producer", Noted)
    return made


def told() -> list[str]:
    """The payments on the topic."""
    with closing(KafkaConsumer(**security.client(), enable_auto_commit=False)) as consumer:
        return sorted(json.loads(record.value)["payment_id"] for record in all_of(consumer, TOPIC))


def test_alerts_go_by_one_connection_until_it_breaks_and_then_by_another(
    store: Store, connections: list[Producer], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(VIEW, SequenceView)
    names = ("first", "second", "third")
    of = {lsn: rows(*[[]] * (lsn - 2), [payment(name, 100_000)]) for lsn, name in enumerate(names, 2)}
    monkeypatch.setattr(alerts, "rows_of", lambda view, above, upto: of[upto])
    alarms = Alarms()
    with closing(alerts.Alerts([VIEW], store, alarms)) as thread:
        for lsn, expected in ((2, 1), (3, 1), (4, 2)):
            if expected == 2:
                connections[0].close()
            alarms.settled.clear()
            thread.notify(lsn, lsn)
            assert alarms.settled.wait(60)
            assert len(connections) == expected
    assert told() == sorted(names)
    assert sum(what is not None for what in alarms.said) == 1, "a broken connection is a problem that is told"
