"""Payments that are told of, their rows, and who hears of the problems of the thread that tells."""

import threading
from typing import Any

import pyarrow as pa

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine.partials import compute
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.registry.views import project_views
from spark_jobs.testing import cases

VIEW = project_views()["payments_scored"]
ALERT = VIEW.declaration.alert if isinstance(VIEW, SequenceView) else None
MODEL: dict[str, Any] = {"model_version": 3, "intercept": -1.0, "occurred_at": "2026-01-05T12:00:00.000Z"}


def payment(name: str, amount: int) -> dict[str, Any]:
    at = "2026-01-05T12:00:01.250Z"
    return {"payment_attempted": {"payment_id": name, "amount_cents": amount, "occurred_at": at, "card_id": "c"}}


def rows(*batches: list[dict[str, Any]]) -> pa.Table:
    """The view's partials, as they lie in speed.partials."""
    facts = cases.facts([[{"payments_model_promoted": MODEL}], *batches])
    model = facts.pop("payments_model_promoted")
    return compute({**facts, side_input_key("payments_model_promoted"): model}, [VIEW]).partials[VIEW.column]


class Alarms:
    """Stands for the speed layer's status: what it was told, one after the other."""

    def __init__(self) -> None:
        self.said: list[str | None] = []
        self.settled = threading.Event()

    def problem(self, name: str, what: str | None) -> None:
        self.said.append(what)
        if what is None:
            self.settled.set()
