"""Promote a model version: a decision in the ledger, its record in Kafka, then the decision is marked as sent.

intent -> event, byte for byte the same at each try -> Kafka, acknowledged -> sent. A crash between leaves an intent,
which the next `train` or `promote` finishes first; a record that is sent twice has one event_id, and counts once.
"""

import json
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from jsonschema import Draft202012Validator

from spark_jobs.contracts.model import Contract
from spark_jobs.ledger.schema import ModelPromotion
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.registry.models import WEIGHT, BoundModel
from spark_jobs.training.linear import Weights

Send = Callable[[Contract, dict[str, Any]], None]
"""Returns when Kafka has taken the event; raises otherwise."""


def promote(store: Store, model: BoundModel, version: int, reason: str, send: Send) -> ModelPromotion:
    """Score with this version from now on. An unfinished decision is sent first, so that this one is the last."""
    roll_forward(store, model, send)
    check(model, Weights.from_json(store.model(model.name, version).weights))
    intent = store.intend_model_promotion(model.name, version, reason)
    _finish(store, model, intent, send)
    return intent


def roll_forward(store: Store, model: BoundModel, send: Send) -> ModelPromotion | None:
    """Send the decision that is not sent yet; None if there is none."""
    for decision in store.model_promotions(model.name)[-1:]:
        if decision.sent_at is None:
            _finish(store, model, decision, send)
            return decision
    return None


def check(model: BoundModel, weights: Weights) -> None:
    """Raise LedgerError if the contract would reject the weights: nobody would score with them.

    Call it before a decision is written down, which otherwise could never be sent.
    """
    made = _event(model, weights, version=1, event_id=str(uuid.UUID(int=0)), at=datetime.now(UTC))
    for error in Draft202012Validator(model.promotion.schema).iter_errors(made):
        raise LedgerError(
            f"{model.promotion.event_type} cannot say {error.json_path} = {error.instance}: {error.message}"
        )


def event(model: BoundModel, weights: Weights, decision: ModelPromotion) -> dict[str, Any]:
    """The record of a decision."""
    return _event(model, weights, decision.version, decision.event_id, decision.decided_at)


def _event(model: BoundModel, weights: Weights, version: int, event_id: str, at: datetime) -> dict[str, Any]:
    return {
        "event_id": event_id,
        "event_type": model.promotion.event_type,
        "occurred_at": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z",
        "model": model.name,
        "model_version": version,
        "intercept": weights.intercept,
        **{f"{WEIGHT}{feature}": weight for feature, weight in weights.of.items()},
    }


def value(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _finish(store: Store, model: BoundModel, decision: ModelPromotion, send: Send) -> None:
    weights = Weights.from_json(store.model(model.name, decision.version).weights)
    send(model.promotion, event(model, weights, decision))
    store.finish_model_promotion(model.name, decision.decision)
