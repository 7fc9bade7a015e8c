"""Views that lack partials of an lsn, and what a run makes of them."""

import threading

import pytest

from spark_jobs.publication.publish import ensure_serving
from spark_jobs.settings import settings
from spark_jobs.speed import compaction, partials_table, tiers, trimming
from spark_jobs.storage import coverage, tables
from spark_jobs.storage.fencing import Fence
from tests.spark.days import DAY1, DAY2, counts, order
from tests.spark.lake import Lake

pytestmark = pytest.mark.spark


def test_a_view_with_a_hole_past_the_cut_keeps_its_old_source(lake: Lake) -> None:
    lake.use("orders_by_day", "orders_by_hour")
    lake.land([order(1)])
    lake.run("r1")
    lake.land([order(2)])
    lake.land([order(3)], views=["orders_by_day"])
    assert lake.plan("r2").cut == 2, "the cut stays below the lsn that a view lacks"
    lake.build("r2")
    lake.store.record_audit("r2", passed=True)
    lake.publish("r2")
    current, run = lake.store.current_publication(), lake.store.run("r2")
    assert current is not None and run is not None
    sources = lake.store.sources(current)
    assert (sources["orders_by_day"].cut, sources["orders_by_hour"].cut) == (2, 1)
    assert run.summary["held_back"] == {"orders_by_hour": 3}


def test_a1_a_view_that_was_held_back_gets_the_days_corrected_meanwhile(lake: Lake) -> None:
    """A1, by a view that is built by days and one that merges."""
    lake.use("orders_by_day", "orders_by_hour", "orders_by_colour")
    lake.land([order(1), order(2)])
    lake.run("r1")
    lake.lose(tables.facts("order_placed"), "event_id LIKE '%2'")
    lake.run("broken", mode="full")
    lake.land([order(3, DAY2)])
    lake.land([order(4, DAY2)], views=["orders_by_day"])
    lake.run("corrected", days=[DAY1])
    sources = lake.store.current_sources()
    assert {view_id: source.cut for view_id, source in sources.items()} == {
        "orders_by_day": 2,
        "orders_by_hour": 1,
        "orders_by_colour": 1,
    }
    lake.catch_up()
    lake.run("r3")
    served = {name: tuple(lake.ask(f"SELECT sum(orders) FROM {name}")) for name in lake.views.by_name}
    assert set(served.values()) == {((4,),)}


def test_a_view_that_the_speed_layer_does_not_know_yet_holds_nobody_up(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1)])
    lake.run("r1")
    lake.land([order(2)])
    lake.use("orders_by_day", "orders_by_colour")
    publication = lake.run("r2")
    assert publication is not None and publication.cut == 2
    assert counts(lake) == [2]
    assert set(lake.store.sources(publication)) == {"orders_by_day"}, "it would lack what lands from now on"


def test_b1_a_new_view_is_filled_over_lsns_whose_partials_were_trimmed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = settings().model_copy(update={"id_window_max_ids": 1})
    monkeypatch.setattr(partials_table, "settings", lambda: small)
    monkeypatch.setattr(tiers, "MANY_COMMITS", 1)
    lake.use("orders_by_day")
    lake.land([order(1), order(2)])
    lake.land([order(1), order(3)])
    lake.run("r1")
    compaction.compact(threading.Lock(), Fence(1))
    lake.land([order(4), order(5)])
    trimming.trim(2, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [3]
    lake.use("orders_by_day", "orders_by_colour")
    lake.land([order(4), order(6)])
    lake.catch_up()
    lake.catch_up()
    ensure_serving(lake.rows, lake.views, lake.store)
    served = {name: lake.ask(f"SELECT sum(orders) FROM {name}") for name in lake.views.by_name}
    assert served == {"orders_by_day": [(6,)], "orders_by_colour": [(6,)]}
