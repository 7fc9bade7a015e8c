"""Publishing as statements: what is created, what is altered, what is refused, what a crash leaves."""

import datetime as dt
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import Store
from spark_jobs.publication import pins
from spark_jobs.publication.publish import PublishRefused, ensure_serving, promote, publish
from spark_jobs.publication.rollback import rollback
from spark_jobs.registry.views import Views
from tests.publishing import NAMES, VIEWS, Server, built, computed

NOW = dt.timedelta(0)


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    computed({})
    opened = ledger.open()
    yield opened
    opened.close()


def test_the_first_publication_creates_views_over_the_speed_layer_alone(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == [f"CREATE VIEW serving.{name}" for name in NAMES]
    current = store.current_publication()
    assert current is not None and (current.id, current.cut) == (0, 0)
    assert all("VERSION AS OF" not in text and "lsn > 0" in text for text in server.texts.values())
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == [], "nothing is said twice"


def test_publishing_alters_and_never_drops(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    server.views_said()
    built(store, "r1", cut=7, version=3)
    assert publish(server, VIEWS, store, "r1") is not None
    assert server.views_said() == [f"ALTER VIEW serving.{name}" for name in NAMES]
    assert all("VERSION AS OF 3" in text and "lsn > 7" in text for text in server.texts.values())
    again = publish(server, VIEWS, store, "r1")
    assert again is not None and again.run_id == "r1"
    assert server.views_said() == [], "one publication per run"


def test_without_a_passed_audit_nothing_is_published(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    before = dict(server.texts)
    built(store, "r1", cut=7, version=3, audited=False)
    with pytest.raises(PublishRefused, match="not audited"):
        publish(server, VIEWS, store, "r1")
    store.record_audit("r1", passed=False, docs_url="the docs")
    with pytest.raises(PublishRefused, match="failed; nothing is published"):
        publish(server, VIEWS, store, "r1")
    store.record_audit("r1", passed=True)
    built(store, "r1", cut=7, version=4, audited=False)
    with pytest.raises(PublishRefused, match="built again after its audit"):
        publish(server, VIEWS, store, "r1")
    assert server.texts == before


def test_a_run_with_a_view_that_was_not_built_is_refused(store: Store) -> None:
    store.begin_run(Run(run_id="r1", cut=7))
    store.record_audit("r1", passed=True)
    with pytest.raises(PublishRefused, match="has not built orders_by_day, word_count"):
        publish(Server(), VIEWS, store, "r1")


def test_publications_go_backwards_only_by_rollback(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    built_at_7 = publish(server, VIEWS, store, "r1")
    built(store, "r0", cut=6, version=4)
    with pytest.raises(PublishRefused, match="has cut 6; publication 1 already has 7"):
        publish(server, VIEWS, store, "r0")
    assert built_at_7 is not None
    back = rollback(server, VIEWS, store)
    assert (back.id, back.kind, back.restores, back.cut) == (2, "rollback", 0, 0)
    assert all("lsn > 0" in text for text in server.texts.values())
    with pytest.raises(PublishRefused, match="a publication before 0"):
        rollback(server, VIEWS, store)
    with pytest.raises(PublishRefused, match=r"batch\.orders_by_day version 3 is gone"):
        rollback(server, VIEWS, store, to=built_at_7.id)


def test_a_crash_between_intent_and_done_is_finished_at_the_next_start(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    server.fatal = "ALTER VIEW serving.word_count"
    with pytest.raises(OSError):
        publish(server, VIEWS, store, "r1")
    assert [("lsn > 7" in server.texts[f"serving.{name}"]) for name in NAMES] == [True, False]
    server.fatal = None
    server.views_said()
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == ["ALTER VIEW serving.word_count"]
    current, run = store.current_publication(), store.run("r1")
    assert current is not None and (current.run_id, current.state) == ("r1", "done")
    assert run is not None and run.state == "finished"


def test_a_new_view_is_served_by_the_speed_layer_until_its_first_build(store: Store) -> None:
    server = Server()
    ensure_serving(server, Views(VIEWS.all[:1]), store)
    built(store, "r1", cut=7, version=3)
    publish(server, Views(VIEWS.all[:1]), store, "r1")
    server.views_said()
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == ["CREATE VIEW serving.word_count"]
    current = store.current_publication()
    assert current is not None
    assert {view_id: source.cut for view_id, source in store.sources(current).items()} == {
        "orders_by_day": 7,
        "word_count": 0,
    }


def test_a_view_that_speed_partials_has_no_column_for_is_held_back(store: Store, platform_home: Path) -> None:
    shutil.rmtree(platform_home / "warehouse")
    server = Server()
    built(store, "r1", cut=7, version=3)
    publish(server, VIEWS, store, "r1")
    assert server.views_said() == [], "its serving view could not even be altered"
    run = store.run("r1")
    assert run is not None and run.summary["held_back"] == {"orders_by_day": 8, "word_count": 8}


@pytest.fixture
def both() -> Views:
    """orders_by_day in two versions."""
    orders, words = VIEWS
    assert isinstance(orders, AggregateView)
    return Views((orders, replace(orders, version=2), words))


def test_a_name_is_served_from_its_first_version_until_another_is_promoted(store: Store, both: Views) -> None:
    server = Server()
    computed({1: NOW, 2: NOW})
    ensure_serving(server, VIEWS, store)
    server.views_said()
    ensure_serving(server, both, store)  # version 2 has no partials of lsn 1 and 2
    assert server.views_said() == []
    with pytest.raises(PublishRefused, match="version 2 of orders_by_day lacks lsn 1"):
        promote(server, both, store, "orders_by_day", 2)
    computed({1: NOW, 2: NOW}, both)
    ensure_serving(server, both, store)
    assert server.views_said() == [], "that it lacks nothing is not yet a decision"
    pins.create(server, both, store, "before")
    server.views_said()
    promote(server, both, store, "orders_by_day", 2)
    assert server.views_said() == ["ALTER VIEW serving.orders_by_day"]
    assert "orders_by_day_v2" in server.texts["serving.orders_by_day"]
    pins.create(server, both, store, "after")
    assert "orders_by_day_v1" in server.texts["pin_before.orders_by_day"]
    assert "orders_by_day_v2" in server.texts["pin_after.orders_by_day"]


def test_a_promotion_outlives_a_restart_and_can_be_taken_back(store: Store, both: Views) -> None:
    server = Server()
    computed({1: NOW}, both)
    ensure_serving(server, both, store)
    promote(server, both, store, "orders_by_day", 2)
    server.views_said()
    ensure_serving(server, both, store)
    assert server.views_said() == []
    promote(server, both, store, "orders_by_day", 1)
    assert "orders_by_day_v1" in server.texts["serving.orders_by_day"]
    assert store.promotions("orders_by_day") == [2, 1] and store.promoted() == {"orders_by_day": 1}


def test_what_is_no_version_is_not_promoted(store: Store, both: Views) -> None:
    computed({1: NOW}, both)
    ensure_serving(Server(), both, store)
    with pytest.raises(PublishRefused, match="orders_by_day has no version 3 to serve; the speed layer computes 1, 2"):
        promote(Server(), both, store, "orders_by_day", 3)
    with pytest.raises(PublishRefused, match="nothing has no version 1"):
        promote(Server(), both, store, "nothing", 1)
    assert store.promoted() == {}
