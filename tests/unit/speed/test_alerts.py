"""Alerts: which rows are told of, and that the same row is told in the same bytes whenever it is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine.partials import compute
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.messaging.producer import Record
from spark_jobs.registry.views import RegistryError, load_views, settings
from spark_jobs.speed import alerts
from spark_jobs.speed.alerts import encoded, events
from spark_jobs.testing import cases
from tests.alerting import ALERT, MODEL, VIEW, Alarms, payment, rows


def told(found: pa.Table) -> list[dict[str, Any]]:
    assert isinstance(VIEW, SequenceView) and ALERT is not None
    return list(events(VIEW, ALERT, found))


def test_only_rows_that_are_picked_out_are_told_of_with_the_lsn_that_scored_them():
    (one,) = told(rows([payment("small", 2_000)], [payment("large", 100_000)]))
    assert one.pop("event_id")
    assert one == {
        "event_type": "payment_alerted", "occurred_at": "2026-01-05T12:00:01.250Z", "payment_id": "large",
        "card_id": "c", "amount_cents": 100_000, "score": 1.25, "source_lsn": 3, "model_version": 3,
    }  # fmt: skip


def test_a_row_is_told_in_the_same_bytes_and_another_one_by_another_id():
    found = rows([payment("a", 100_000), payment("b", 100_000)])
    first, again = ([encoded(one) for one in told(found)] for _ in range(2))
    assert first == again and len({one["event_id"] for one in told(found)}) == 2


def test_a_row_without_a_model_is_no_alert():
    facts = cases.facts([[payment("a", 100_000)]])
    nothing = cases.facts([[{"payments_model_promoted": MODEL}]])["payments_model_promoted"].slice(0, 0)
    found = compute({**facts, side_input_key("payments_model_promoted"): nothing}, [VIEW]).partials[VIEW.column]
    assert found["score"].to_pylist() == [None] and told(found) == []


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    opened = ledger.open()
    yield opened
    opened.close()


def sent_by(store: Store, *notices: tuple[int, int]) -> None:
    """Tell a thread of these lsns, one after the other, and wait until it has sent."""
    alarms = Alarms()
    thread = alerts.Alerts([VIEW], store, alarms)
    for first, last in notices:
        alarms.settled.clear()
        thread.notify(first, last)
        assert alarms.settled.wait(30)
    thread.close()


def test_a_failure_is_an_alarm_until_all_is_told(store: Store, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[int, int]] = []

    def rows_of(view: SequenceView, above: int, upto: int) -> pa.Table:
        asked.append((above, upto))
        if len(asked) == 1:
            raise OSError("the disk is away\nfor a while")
        return VIEW.partial_schema.empty_table()

    monkeypatch.setattr(alerts, "rows_of", rows_of)
    monkeypatch.setattr(alerts, "PAUSE_SECONDS", 0.0)
    store.record_alerts_sent({VIEW.column: 7})
    alarms = Alarms()
    thread = alerts.Alerts([VIEW], store, alarms)
    thread.notify(9, 9)
    assert alarms.settled.wait(30)
    thread.close()
    assert alarms.said == ["the disk is away", None]
    assert asked == [(7, 9), (7, 9)] and store.alerts_sent() == {VIEW.column: 9}


def test_a7_a_restart_sends_what_is_not_sent_and_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch):
    """Whatever retention has left of the topic."""
    asked: list[tuple[int, int]] = []

    def rows_of(view: SequenceView, above: int, upto: int) -> pa.Table:
        asked.append((above, upto))
        return VIEW.partial_schema.empty_table()

    monkeypatch.setattr(alerts, "rows_of", rows_of)
    sent_by(store, (1, 3), (4, 4))
    sent_by(store, (8, 7))
    sent_by(store, (8, 7), (8, 8))
    assert asked == [(0, 3), (3, 4), (4, 7), (7, 7), (7, 8)]


def test_lsns_that_a_view_is_given_later_are_sent_for_this_view_alone(store: Store, monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[int, int]] = []

    def rows_of(view: SequenceView, above: int, upto: int) -> pa.Table:
        asked.append((above, upto))
        return VIEW.partial_schema.empty_table()

    monkeypatch.setattr(alerts, "rows_of", rows_of)
    store.record_alerts_sent({VIEW.column: 20})
    alarms = Alarms()
    thread = alerts.Alerts([VIEW], store, alarms)
    thread.notify(5, 9, {"another_v1"})
    thread.notify(15, 16, {VIEW.column, "another_v1"})
    assert alarms.settled.wait(30)
    thread.close()
    assert asked == [(14, 16)] and store.alerts_sent() == {VIEW.column: 20}


def test_a_crash_leaves_one_micro_batch_in_doubt(store: Store, monkeypatch: pytest.MonkeyPatch):
    """A crash between two partitions of one lsn must not hide an earlier lsn's alerts, nor repeat them."""
    done: list[list[int]] = []

    class Kafka:
        def close(self) -> None:
            """Nothing is open."""

        def send(self, records: list[Record]) -> None:
            """Returns when all are acknowledged."""
            done.append([json.loads(record.value or b"")["source_lsn"] for record in records])
            assert store.alerts_sent() == ({} if len(done) == 1 else {VIEW.column: 2})

    found = rows([payment("a", 100_000), payment("b", 90_000)], [payment("c", 2_000)], [payment("d", 100_000)])
    monkeypatch.setattr(alerts, "rows_of", lambda *_: found)
    monkeypatch.setattr(alerts, "Producer", Kafka)
    sent_by(store, (2, 4))
    assert done == [[2, 2], [4]] and store.alerts_sent() == {VIEW.column: 4}


WRONG = {
    "unknown event type": ('of="payment_alerted"', 'of="nobody_told"', "unknown event type nobody_told"),
    "a field that no column has": ('"card_id": "card_id",', "", "an alert payment_alerted with card_id"),
    "an unknown column in `same`": ('"model_version")', '"colour")', "an alert payment_alerted with colour"),
    "a condition that is none": ('where="is_flagged"', 'where="score"', "cannot be DOUBLE"),
}


@pytest.mark.parametrize(("old", "new", "reason"), WRONG.values(), ids=WRONG)
def test_an_alert_that_cannot_be_told_is_refused(tmp_path, old: str, new: str, reason: str):
    text = (settings().views_folder / "payments_scored.py").read_text()
    assert old in text
    (tmp_path / "payments_scored.py").write_text(text.replace(old, new))
    with pytest.raises(RegistryError, match=reason):
        load_views(tmp_path)
