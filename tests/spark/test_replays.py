"""Replays: a part of history is done again, compared with what is published, and published with consent alone."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.batch.build_tasks import BuildMode
from spark_jobs.batch.plan import FROM_FACTS
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.expressions.expression import Expression
from spark_jobs.ledger.replays import NOBODY
from spark_jobs.ledger.schema import Replay
from spark_jobs.ledger.store import LedgerError
from spark_jobs.publication.publish import promote
from spark_jobs.quality.reconciliation.causes import CORRECTED
from spark_jobs.registry.views import Views, project_views
from spark_jobs.replay.differences import LOOKED_UP, OTHERWISE, differences
from spark_jobs.replay.planned import plan_replay, state
from spark_jobs.replay.preview import preview
from spark_jobs.replay.wanted import Wanted
from spark_jobs.serving import source_diff
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from tests.spark.days import DAY1, DAY2, counts, facts, order
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def asked(lake: Lake, run_id: str, wanted: Wanted) -> None:
    told = preview(lake.store, lake.views, wanted)
    lake.store.begin_replay(
        Replay(run_id=run_id, wanted=wanted.as_json(), reason="a test", asked_by="me", preview=told)
    )


def compared(lake: Lake, run_id: str) -> list[dict[str, Any]]:
    """The replay is planned, built, audited and compared."""
    plan_replay(lake.store, lake.views, run_id)
    lake.build(run_id)
    lake.store.record_audit(run_id, passed=True)
    run = lake.store.run(run_id)
    assert run is not None
    found = [one.as_json() for one in differences(lake.store, lake.views, run, settings().data_docs / run_id)]
    lake.store.record_differences(run_id, found)
    return found


def between(lake: Lake, before: int, after: int) -> list[str]:
    """The views that answer otherwise by one publication than by another."""
    old, new = lake.store.sources(before), lake.store.sources(after)
    head, folder = lake.store.readable_publication(after).cut, settings().data_docs
    return [found.view for found in source_diff.between(lake.views, old, new, head, ("before", "after"), folder)]


def spoilt(lake: Lake) -> tuple[Any, ...]:
    """What is right; a fact is lost then, and the published answers with it."""
    lake.use("orders_by_day", "trades")
    lake.land([order(1), order(2), order(3, DAY2)])
    lake.run("r1")
    right = facts(lake), lake.served("orders_by_day"), lake.served("trades")
    lake.lose(tables.facts("order_placed"), "event_id LIKE '%2'")
    lake.run("broken", mode="full")
    assert counts(lake) == [1, 1]
    return right


def test_a_replay_from_raw_bytes_mends_what_is_served_once_somebody_agrees_and_i9_changes_nothing_twice(
    lake: Lake,
) -> None:
    right = spoilt(lake)
    asked(lake, "again", Wanted("raw", days=(DAY1,)))
    orders, trades = compared(lake, "again")
    assert (orders["view"], orders["gone"], orders["new"], orders["other"]) == ("orders_by_day", 0, 0, 1)
    assert trades["view"] == "trades"
    assert (orders["causes"], trades["causes"]) == ({CORRECTED: 1}, {CORRECTED: 2})
    assert orders["greatest"][0].startswith("store_id=1, day=2026-01-05: orders 1 (published) 2 (replayed)")
    with pytest.raises(LedgerError, match="replay again waits for approval"):
        lake.publish("again")
    assert counts(lake) == [1, 1], "nobody sees it before"
    lake.store.approve_replay("again", "an operator")
    assert lake.publish("again") is not None
    assert (facts(lake), lake.served("orders_by_day"), lake.served("trades")) == right
    differs = between(lake, lake.store.publications()[1].id, lake.store.publications()[0].id)
    assert differs == ["orders_by_day", "trades"], "what the replay has changed can be asked for again"
    assert between(lake, 0, 2) == [], "as it was before the loss"
    asked(lake, "twice", Wanted("raw", days=(DAY1,)))
    assert compared(lake, "twice") == []
    replay = lake.store.asked_replay("twice")
    assert replay.approved_by == NOBODY
    lake.publish("twice")
    assert state(replay, lake.store.run("twice")) == "nothing differs"
    assert (facts(lake), lake.served("orders_by_day"), lake.served("trades")) == right


@pytest.mark.slow
def test_a_replay_of_lsns_decodes_them_alone(lake: Lake) -> None:
    right = spoilt(lake)
    lake.land([order(4)])
    asked(lake, "again", Wanted("raw", lsns=((1, 1),)))
    found = {one["view"]: one for one in compared(lake, "again")}
    assert found["orders_by_day"]["other"] == 1, "what has landed since is in both answers"
    run = lake.store.run("again")
    assert run is not None and run.summary["decoded_again"] == [[1, 1]] and run.cut == 2
    lake.store.approve_replay("again", "an operator")
    lake.publish("again")
    assert counts(lake) == [3, 1] and len(facts(lake)) == len(right[0]) + 1


@contextmanager
def out_of_reach(table: str) -> Iterator[None]:
    """Nobody can read it meanwhile."""
    folder = Path(tables.path(table))
    away = folder.rename(folder.with_name("away"))
    yield
    away.rename(folder)


@pytest.mark.slow
def test_a_replay_from_facts_builds_the_chosen_views_alone(lake: Lake) -> None:
    lake.use("orders_by_day", "word_count", "orders_by_colour")
    lake.land([order(1), order(2, DAY2), event("sentence_posted", 9)])
    lake.run("r1")
    before = {name: lake.served(name) for name in ("orders_by_day", "word_count", "orders_by_colour")}
    asked(lake, "again", Wanted("facts", views=("orders_by_day", "word_count"), days=(DAY1,)))
    with out_of_reach("batch.orders_by_colour"):
        assert compared(lake, "again") == []
    run = lake.store.run("again")
    assert run is not None and run.summary[FROM_FACTS] == ["orders_by_day", "word_count"]
    assert run.summary["decoded_again"] == []
    modes = {view_id: build.mode for view_id, build in lake.store.builds("again").items()}
    assert modes == {
        "orders_by_day": BuildMode.BUCKETS,
        "word_count": BuildMode.FULL,
        "orders_by_colour": BuildMode.SAME,
    }
    lake.publish("again")
    assert {name: lake.served(name) for name in before} == before


def test_a_cancelled_replay_leaves_what_is_served_and_the_next_run_begins(lake: Lake) -> None:
    spoilt(lake)
    asked(lake, "again", Wanted("raw", days=(DAY1,)))
    compared(lake, "again")
    lake.store.cancel_replay("again", "an operator")
    with pytest.raises(LedgerError, match="was cancelled by an operator"):
        lake.publish("again")
    assert counts(lake) == [1, 1]
    publication = lake.run("r2")
    assert publication is not None and counts(lake) == [2, 1], "the facts are mended, so the next run shows them"


def test_each_row_that_differs_has_its_cause_also_where_no_record_explains_it(lake: Lake) -> None:
    names = {"orders_by_day", "trades", "trades_by_colour", "user_card", "user_settings"}
    every = project_views()
    lake.views = Views(
        tuple(view for view in every if view.name in names), tuple(view for view in every.chained if view.name in names)
    )
    traded = order(1)
    executed = event("order_executed", 7, comp_id=traded["comp_id"], occurred_at=f"{DAY1}T10:00:00.000Z")
    lake.land([traded, executed, event("profile_changed", 5), event("settings_changed", 6)])
    lake.run("r1")
    [(user,)] = lake.ask("SELECT user_id FROM user_card")
    lake.spoil(tables.facts("settings_changed"), plan="'spoilt'")
    lake.spoil(tables.facts("order_placed"), colour="'spoilt'", unit_price_cents="1")
    asked(lake, "again", Wanted("facts"))
    causes = {one["view"]: one["causes"] for one in compared(lake, "again")}
    assert causes == {
        "orders_by_day": {OTHERWISE: 1},
        "trades": {OTHERWISE: 1},
        "trades_by_colour": {"of trades": 2},
        "user_card": {LOOKED_UP: 1},
        "user_settings": {OTHERWISE: 1},
    }
    rows = (settings().data_docs / "again" / "user_card.csv").read_text().splitlines()
    assert rows[1].startswith(f"{user},") and rows[1].endswith(LOOKED_UP), "the file has the cause of each row"


def test_a_view_that_was_wrong_is_served_from_its_second_version_once_somebody_agrees(lake: Lake) -> None:
    wrong = project_views()["orders_by_day"]
    assert isinstance(wrong, AggregateView)
    many = Expression(
        "quantity > 1", "BOOLEAN", frozenset({"quantity"}), "`quantity` > 1", '"quantity" > 1', None, None
    )
    mended = replace(wrong, version=2, where=many)
    lake.views = Views((wrong, mended))
    lake.land([order(1), order(2, quantity=2)])
    lake.run("r1")
    assert counts(lake) == [2]
    asked(lake, "again", Wanted("facts", views=("orders_by_day",), promote=True))
    [found] = compared(lake, "again")
    assert (found["view"], found["other"], found["causes"]) == ("orders_by_day", 1, {"version 2": 1})
    assert counts(lake) == [2] and lake.store.promoted() == {}
    lake.store.approve_replay("again", "an operator")
    lake.publish("again")
    assert counts(lake) == [1] and lake.store.promoted() == {"orders_by_day": 2}
    with pytest.raises(LedgerError, match="there is no version but the one that is served"):
        Wanted("facts", views=("orders_by_day",), promote=True).promotes(lake.views, lake.store.promoted())
    promote(lake.rows, lake.views, lake.store, "orders_by_day", 1)
    assert counts(lake) == [2]
