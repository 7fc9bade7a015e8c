"""Alarms as rows: raised once, cleared once, told once each, acknowledged by name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import LedgerError, Store

LAG = {"lag: order_placed": "3 records are unread"}


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    opened = ledger.open()
    yield opened
    opened.close()


def test_an_alarm_is_one_row_from_its_raise_to_its_clearing(store: Store) -> None:
    store.settle_alarms(LAG)
    store.settle_alarms({"lag: order_placed": "5 records are unread"})
    [alarm] = store.raised_alarms()
    assert (alarm.message, alarm.runbook) == ("5 records are unread", "docs/runbooks/alarms.md#lag")
    store.settle_alarms({})
    store.settle_alarms({})
    [cleared] = store.alarms(newest=10)
    assert cleared.cleared_at is not None and store.raised_alarms() == []
    store.settle_alarms(LAG)
    assert [alarm.cleared_at is None for alarm in store.alarms(newest=10)] == [True, False], "the next one is another"


def test_what_nobody_could_look_at_is_neither_raised_nor_cleared(store: Store) -> None:
    store.settle_alarms({**LAG, "disk": "full"})
    store.settle_alarms({"hole: order_placed 0": "gone"}, unknown=["lag", "hole"])
    assert [alarm.name for alarm in store.raised_alarms()] == ["lag: order_placed"]


def test_each_raise_and_each_clearing_is_news_until_it_is_told(store: Store) -> None:
    store.settle_alarms(LAG)
    [raised] = store.untold_alarms()
    store.settle_alarms({"lag: order_placed": "5 records are unread"})
    store.record_alarm_told(raised.id, is_cleared=False)
    assert store.untold_alarms() == []
    store.settle_alarms({})
    [cleared] = store.untold_alarms()
    store.record_alarm_told(cleared.id, is_cleared=True)
    assert store.untold_alarms() == []


def test_a_clearing_that_comes_while_the_raise_is_told_is_news_of_its_own(store: Store) -> None:
    store.settle_alarms(LAG)
    [raised] = store.untold_alarms()
    store.settle_alarms({})
    store.record_alarm_told(raised.id, is_cleared=False)
    assert [alarm.id for alarm in store.untold_alarms()] == [raised.id]


def test_whoever_acknowledges_first_is_kept_and_only_for_this_raise(store: Store) -> None:
    store.settle_alarms(LAG)
    [alarm] = store.raised_alarms()
    store.acknowledge_alarm(alarm.id, "ada")
    assert store.acknowledge_alarm(alarm.id, "bob").acknowledged_by == "ada"
    store.settle_alarms({})
    store.settle_alarms(LAG)
    assert [alarm.acknowledged_by for alarm in store.raised_alarms()] == [None]
    with pytest.raises(LedgerError, match="no alarm 99"):
        store.acknowledge_alarm(99, "ada")
