"""Which version of a view its name serves, and when that changes."""

import pytest

from spark_jobs.ledger.store import Store
from spark_jobs.publication import pins
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.publish import ensure_serving, promote
from spark_jobs.registry.views import Views
from tests.publishing import NOW, VIEWS, Server, computed


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


def test_a_version_whose_file_takes_the_place_of_the_one_that_is_served_waits_until_it_lacks_nothing(
    store: Store, both: Views
) -> None:
    server = Server()
    computed({1: NOW, 2: NOW})
    ensure_serving(server, VIEWS, store)
    server.views_said()
    replaced = Views(both.all[1:])
    named = ensure_serving(server, replaced, store)
    assert (named.waiting, named.left) == (("orders_by_day",), ("serving.orders_by_day",))
    assert server.views_said() == [], "a part of its history looks like an answer"
    computed({1: NOW, 2: NOW}, replaced)
    assert ensure_serving(server, replaced, store).left == ()
    assert server.views_said() == ["ALTER VIEW serving.orders_by_day"]
    assert "orders_by_day_v2" in server.texts["serving.orders_by_day"]


def test_a3_a_pin_of_a_past_moment_shows_the_version_that_was_served_then(store: Store, both: Views) -> None:
    server = Server()
    computed({1: NOW}, both)
    ensure_serving(server, both, store)
    before = pins.create(server, both, store, "before")
    promote(server, both, store, "orders_by_day", 2)
    pins.create(server, both, store, "then", at=before.now)
    assert "orders_by_day_v1" in server.texts["pin_then.orders_by_day"]


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
