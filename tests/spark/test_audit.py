"""The gate lets good runs pass, stops bad ones by the name of what is wrong, and never lets one through unlooked."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger.runs import UNEXPLAINED
from spark_jobs.ledger.schema import Build
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.quality.gate import audit
from spark_jobs.quality.reconciliation.agreement import ACCEPTED
from spark_jobs.quality.reconciliation.causes import DUPLICATE
from spark_jobs.storage import duckdb_reader, tables
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def order(number: int, **fields: Any) -> dict[str, Any]:
    return event("order_placed", number, occurred_at=f"2026-01-05T09:{number:02d}:00.000Z", **fields)


def built(lake: Lake, run_id: str = "r1") -> Lake:
    lake.plan(run_id)
    lake.build(run_id)
    return lake


def audited(lake: Lake, run_id: str = "r1", accept: str | None = None) -> tuple[bool, str]:
    """Whether the run passed, and all that was said."""
    said: list[str] = []
    passed = audit(lambda: lake.spark, lake.store, lake.views, run_id, said.append, accept)
    return passed, "\n".join(said)


def agreements(lake: Lake, run_id: str = "r1") -> dict[str, dict[str, int]]:
    run = lake.store.run(run_id)
    assert run is not None
    return {row["view"]: row["causes"] for row in run.summary["agreement"]}


def test_a_good_run_passes_with_every_table_in_the_data_docs(lake: Lake) -> None:
    lake.use("orders_by_day", "trades", "word_count")
    lake.land([order(1), order(2, quantity=2000), order(2), b"{"], topic="order_placed")
    lake.land([event("order_executed", 5), event("sentence_posted", 6)])
    passed, said = audited(built(lake))
    assert passed, said
    assert "warning: facts.order_placed: quantity: values to be between (max_value=1000): 1 of 2 rows" in said
    verdict = lake.store.audit("r1")
    assert verdict is not None and verdict.warnings == 1 and verdict.docs_url is not None
    docs = Path(verdict.docs_url.removeprefix("file://")).parent
    pages = {page.parts[len(docs.parts) + 1 :][:2] for page in docs.glob("validations/*/*/r1/*/*.html")}
    assert {("batch", "orders_by_day"), ("batch", "trades_rows"), ("facts", "order_placed"), ("master", "log")} <= pages
    assert set(agreements(lake)) == {"orders_by_day", "trades", "word_count"}
    assert not any(agreements(lake).values())
    assert lake.publish("r1") is not None


def test_an_event_that_breaks_an_own_expectation_stops_this_run_and_the_next(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1, unit_price_cents=99_999_999), order(2)])
    passed, said = audited(built(lake))
    assert not passed
    assert "critical: facts.order_placed: unit_price_cents: values to be between" in said
    assert "1 of 2 rows, such as 99999999" in said
    verdict = lake.store.audit("r1")
    assert verdict is not None and verdict.docs_url is not None
    page = Path(verdict.docs_url.removeprefix("file://"))
    assert "unit_price_cents" in page.read_text() and "validations/facts/order_placed/r1" in page.as_posix()
    with pytest.raises(PublishRefused, match="the audit of run r1 failed"):
        lake.publish("r1")
    lake.land([order(3)])
    passed, said = audited(built(lake, "r2"), "r2")
    assert not passed and "99999999" in said, "what a stopped run left is audited again"


BUILT, FACTS = "batch.orders_by_day", "facts.order_placed"


def damage(lake: Lake) -> None:
    """Do what DAMAGE names."""
    write_deltalake(tables.path(BUILT), duckdb_reader.dataset(BUILT).to_table(), mode="append")
    lake.spoil(BUILT, orders="-1")
    lake.spoil(BUILT, "store_id = 9", store_id="NULL")
    lake.lose(FACTS, '"offset" = 1')


DAMAGE = (
    "batch.orders_by_day: compound columns to be unique",
    "batch.orders_by_day: orders: values to be between (min_value=0)",
    "batch.orders_by_day: store_id: values to not be null",
    "master.log: pair values to be equal",
)


def test_each_wrong_row_stops_the_run_by_name_and_an_operator_may_accept_what_differs(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1), order(2), order(3, store_id=9)])
    built(lake)
    base = {table: duckdb_reader.version(table) for table in (BUILT, FACTS)}
    damage(lake)
    _take_newest(lake)
    passed, said = audited(lake)
    assert not passed
    assert [named for named in DAMAGE if f"critical: {named}" not in said] == [], said
    assert agreements(lake)["orders_by_day"].keys() == {UNEXPLAINED}
    for table, version in base.items():
        DeltaTable(tables.path(table)).restore(version)
    lake.spoil(BUILT, "store_id <> 9", orders="7")
    _take_newest(lake)
    passed, said = audited(lake)
    assert not passed and "orders 7 (batch) 2 (speed)" in said, said
    passed, said = audited(lake, accept="counted by hand")
    assert passed and ACCEPTED in said, said
    lake.lose(BUILT, "true")
    _take_newest(lake)
    shutil.rmtree(tables.path("facts.page_viewed"))
    passed, said = audited(lake)
    assert not passed and "critical: batch.orders_by_day: table row count to be between (min_value=1)" in said, said
    assert "critical: facts.page_viewed: cannot be audited" in said, said


def _take_newest(lake: Lake) -> None:
    """Let the run point at the newest version of its table."""
    build = lake.store.builds("r1")["orders_by_day"]
    values = {column.name: getattr(build, column.name) for column in Build.__table__.columns}
    version = duckdb_reader.version("batch.orders_by_day")
    lake.store.record_build(Build(**{**values, "batch_version": version}))


def test_a_duplicate_outside_the_window_passes_by_its_cause(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1)])
    audited(built(lake))
    lake.publish("r1")
    lake._window = IdWindow(3600, 1_000_000)
    lake.land([order(1), order(3)])
    passed, said = audited(built(lake, "r2"), "r2")
    assert passed, said
    assert agreements(lake, "r2")["orders_by_day"] == {DUPLICATE: 1}


def test_a1_views_that_were_held_back_are_held_to_their_facts(lake: Lake) -> None:
    """A1: agreement is blind to what both their old sources and the speed layer lack."""
    held_back = ("orders_by_hour", "orders_by_colour", "trades")
    lake.use("orders_by_day", *held_back)
    other = event("order_placed", 9, occurred_at="2026-01-09T09:00:00.000Z")
    trade = {"event_id": event("order_executed", 5)["event_id"], "occurred_at": "2026-01-05T10:00:00.000Z"}
    lake.land([order(1), order(2), {**event("order_executed", 5), **trade}])
    lake.run("r1")
    lake.land([other])
    lake.land([other], views=["orders_by_day"])
    lake.run("r2")
    lake.catch_up()
    for table in ("order_placed", "order_executed"):
        lake.lose(tables.facts(table), "day = DATE '2026-01-05' AND NOT event_id LIKE '%1'")
    passed, said = audited(built(lake, "r3"), "r3")
    assert not passed
    for name in held_back:
        assert any(line.startswith(f"{name}:") and "unexplained" in line for line in said.splitlines()), said
    assert said.count("(facts)") >= len(held_back), said
    assert not agreements(lake, "r3")["orders_by_day"], "it was not held back"
