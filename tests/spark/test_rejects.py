"""A5: facts that a view's expressions reject are recorded by both layers, and compared."""

from typing import Any

import pytest
from deltalake import DeltaTable

from spark_jobs.quality import recompute
from spark_jobs.quality.gate import audit
from spark_jobs.quality.verification.findings import State
from spark_jobs.quality.verification.recompute_checks import view_stands
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import tables
from tests.dear_orders import BY_DAY, BY_STORE, DEAR, FIELDS, ROWS, views
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def order(number: int, **fields: Any) -> dict[str, Any]:
    return event("order_placed", number, occurred_at="2026-01-05T09:00:00.000Z", **fields)


def dear(number: int) -> dict[str, Any]:
    return order(number, **DEAR)


def of_batch(lake: Lake) -> list[tuple[Any, ...]]:
    return lake.rows(f"SELECT view, lsn, `offset`, field FROM {tables.by_path(tables.VIEW_REJECTS)}")


def of_speed(lake: Lake) -> list[tuple[Any, ...]]:
    rows = f"SELECT control.view, lsn, control.`offset`, control.field FROM {tables.by_path(tables.SPEED_PARTIALS)}"
    of_views = lake.rows(f"{rows} WHERE view = '__reject__' AND control.view IS NOT NULL")
    ids = {view.column: view.id for view in lake.views}
    return sorted(((ids[view], *rest) for view, *rest in of_views), key=repr)


def audited(lake: Lake, run_id: str) -> tuple[bool, str]:
    said: list[str] = []
    return audit(lambda: lake.spark, lake.store, lake.views, run_id, said.append), "\n".join(said)


def expected(*places: tuple[int, int]) -> list[tuple[Any, ...]]:
    return sorted(((view, *place, field) for view, field in FIELDS.items() for place in places), key=repr)


def test_a5_both_layers_record_the_facts_that_a_view_rejects_and_are_compared(lake: Lake) -> None:
    lake.views = views()
    lake.land([order(1), dear(2)], views=[BY_DAY])
    lake.catch_up()
    lake.run("r1")
    lake.land([order(3), order(4), dear(5)])
    lake.plan("r2")
    lake.build("r2")
    assert of_batch(lake) == of_speed(lake) == expected((1, 1), (2, 4))
    passed, said = audited(lake, "r2")
    assert passed, said
    lake.publish("r2")
    lake.run("r3", mode="full")
    assert of_batch(lake) == expected((1, 1), (2, 4)), "a rebuild records what it finds, once"
    facts, sources = recompute.facts(2), lake.store.current_sources()
    stored = LocalAnswers(lake.views, sources, 2)
    assert {view_stands(facts, stored, view).state for view in lake.views} == {State.HOLDS}
    DeltaTable(tables.path(tables.VIEW_REJECTS)).delete(f"lsn = 2 AND view = '{ROWS}'")
    lost = view_stands(facts, stored, lake.views[ROWS])
    assert lost.state is State.BREACH and "reject lsn=2" in lost.first[0], lost


def test_a5_a_fact_that_only_one_layer_rejects_stops_the_run(lake: Lake) -> None:
    lake.views = views()
    lake.land([order(1), dear(2)])
    lake.plan("r1")
    lake.build("r1")
    DeltaTable(tables.path(tables.VIEW_REJECTS)).delete(f"view = '{BY_STORE}'")
    passed, said = audited(lake, "r1")
    assert not passed
    assert "rejected: lsn=1, topic=order_placed, partition=0, offset=1: only in speed" in said
