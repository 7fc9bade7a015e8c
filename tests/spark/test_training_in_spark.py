"""LinearSVC on payments of the generator, landed, built and published by the platform's own steps."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from spark_jobs.registry.models import BoundModel, load_models
from spark_jobs.sample.sources import payments
from spark_jobs.sample.sources.draw import Draw
from spark_jobs.storage import tables
from spark_jobs.training import examples
from spark_jobs.training.fit import fit
from spark_jobs.training.train import train
from tests import scored
from tests.spark.lake import Lake

pytestmark = pytest.mark.spark

START_MS, PAYMENTS, EVERY_MS = 1_767_225_600_000, 12_000, 1_000


def drawn(source: Any, n: int, rate: float) -> Iterator[dict[str, Any]]:
    occurred = START_MS + (np.arange(n) / rate * 1000).astype(np.int64)
    _, values = source(Draw(np.random.default_rng(7), 0, occurred, "test", rate))
    return (json.loads(value) for value in values)


@pytest.fixture
def fraud(lake: Lake) -> BoundModel:
    """The model over a lake with one published run, in which a twentieth of the disputes is wrong."""
    lake.views = scored.views()
    rate = 1000 / EVERY_MS
    disputes = drawn(payments.disputes, int(PAYMENTS * payments.DISPUTES_PER_PAYMENT), payments.DISPUTES_PER_PAYMENT)
    lake.land([*drawn(payments.attempts, PAYMENTS, rate), *disputes])
    assert lake.run("r1") is not None
    return load_models(lake.views)["payments_fraud"]


@pytest.mark.slow
def test_a_model_of_the_towns_payments_finds_the_thieves_and_is_the_same_each_time(
    lake: Lake, fraud: BoundModel, spark: SparkSession
) -> None:
    sent: list[dict[str, Any]] = []
    one = train(lake.store, fraud, "r1", partial(fit, spark), lambda contract, event: sent.append(event)).model
    assert one is not None and one.is_accepted and one.metrics["examples"]["held_out"] > 1_000
    judged = one.metrics["candidate"]
    assert judged["precision"] > 0.8 and judged["recall"] > 0.8, judged
    build = lake.store.builds("r1")["payments_scored"]
    assert build.results_version is not None
    found = examples.read(fraud, build.results_version, build.cut)
    assert asdict(fit(spark, found.names, found.training)) == one.weights
    assert examples.read(fraud, build.results_version, build.cut).counts() == one.metrics["examples"]
    lake.land(sent)
    lake.land(_again(drawn(payments.attempts, 120, 1.0)))
    lake.run("r2")
    promoted = lake.rows(f"SELECT model_version, weight_is_abroad > 0 FROM {tables.facts('payments_model_promoted')}")
    assert promoted == [(1, True)], "a promotion is an event like any other"
    scores = "SELECT model_version, count(*), count_if(is_flagged) FROM serving.payments_scored GROUP BY ALL"
    (version, scored_now, flagged), old = lake.rows(scores)
    assert (version, scored_now) == (1, 120) and 4 <= flagged <= 8, "two thefts of three payments each"
    assert old == (None, PAYMENTS, 0), "old payments keep having no score"


def _again(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same payments as others, of two thefts."""
    for event in events:
        number = event["payment_id"].rpartition("-")[2]
        yield {**event, "event_id": str(uuid.uuid4()), "payment_id": f"new-{number}"}
