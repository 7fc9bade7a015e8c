"""What rows are given of the log's past, a model's weights, is the same in both layers, however it comes to them."""

from typing import Any

import pytest

from spark_jobs.engine.id_window import IdWindow
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.quality.reconciliation.agreement import agree
from spark_jobs.speed import catch_up
from spark_jobs.storage import tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def payment(number: int, **fields: Any) -> dict[str, Any]:
    at = f"2026-01-05T09:{number:02d}:00.000Z"
    return event("payment_attempted", number, occurred_at=at, payment_id=f"p{number}", amount_cents=100_000, **fields)


def model(number: int, intercept: float) -> dict[str, Any]:
    at = "2026-01-05T08:00:00.000Z"
    return event("payments_model_promoted", 900 + number, occurred_at=at, model_version=number, intercept=intercept)


def scores(lake: Lake) -> dict[str, tuple[float | None, int | None]]:
    rows = lake.rows("SELECT payment_id, score, model_version FROM serving.payments_scored")
    return {payment_id: (score, version) for payment_id, score, version in rows}


WEIGHTS = 0.25 + 2.0  # of a large payment of 1,000 at home, by the example of the schema


def test_a_payment_keeps_the_score_of_the_model_that_was_in_force(lake: Lake) -> None:
    lake.use("payments_scored")
    lake.land([payment(1), model(1, -1.0)])
    ensure_serving(lake.rows, lake.views, lake.store)
    lake.land([payment(2)])
    expected: dict[str, tuple[float | None, int | None]] = {"p1": (None, None), "p2": (WEIGHTS - 1, 1)}
    assert scores(lake) == expected
    assert lake.run("r1") is not None
    assert scores(lake) == expected, "a full build finds the same models"
    lake.land([payment(3), model(2, 1.0), payment(4)])
    lake.land([payment(5), model(1, -1.0)])  # the first model again: a repetition, which promotes nothing
    lake.land([payment(6)])
    expected |= {f"p{n}": (WEIGHTS - 1, 1) for n in (3, 4)} | {f"p{n}": (WEIGHTS + 1, 2) for n in (5, 6)}
    assert scores(lake) == expected
    old = lake.store.sources(lake.store.current_publication())
    assert lake.run("r2") is not None
    assert scores(lake) == expected, "the changed mode finds the models of before its rows"
    (found,) = agree(lake.views, old, lake.store.sources(lake.store.current_publication()), {})
    assert found.differing == 0
    assert lake.run("r3", mode="full") is None or scores(lake) == expected


def test_catch_up_over_many_micro_batches_gives_each_its_model(lake: Lake) -> None:
    lake.use("payments_scored")
    for number, events in enumerate(([model(1, -1.0)], [payment(1), model(2, 1.0)], [payment(2)]), 1):
        assert lake.land(events, views=[]) == number
    assert ensure_serving(lake.rows, lake.views, lake.store).waiting == ("payments_scored",), "it has no partials yet"
    views = list(lake.views)
    window, inputs = IdWindow(3600, 1000), SideInputs(views, 0)
    catch_up.catch_up(lake.spark, views, {}, 0, window, inputs, Fence(1), lambda gap, outcome: None)
    assert lake.rows(f"SELECT count(*) FROM {tables.SPEED_PARTIALS} WHERE view = 'payments_scored_v1'") == [(2,)]
    ensure_serving(lake.rows, lake.views, lake.store)
    assert scores(lake) == {"p1": (WEIGHTS - 1, 1), "p2": (WEIGHTS + 1, 2)}
