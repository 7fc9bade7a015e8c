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

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.ledger.schema import ModelPromotion
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.messaging import topics
from spark_jobs.messaging.producer import Producer, Record, SendError
from spark_jobs.registry.models import WEIGHT, BoundModel
from spark_jobs.training.linear import Weights

PRODUCER = b"tidemark-models"
Send = Callable[[Contract, dict[str, Any]], None]
"""Returns when Kafka has taken the event; raises otherwise."""


def promote(store: Store, model: BoundModel, version: int, reason: str, send: Send) -> ModelPromotion:
    """Score with this version from now on. An unfinished decision is sent first, so that this one is the last."""
    roll_forward(store, model, send)
    check(model, _weights(store, model, version))
    intent = store.intend_model_promotion(model.name, version, reason)
    roll_forward(store, model, send)
    return intent


def roll_forward(store: Store, model: BoundModel, send: Send) -> None:
    """Send the decision that is not sent yet, if there is one."""
    for decision in store.model_promotions(model.name)[-1:]:
        if decision.sent_at is None:
            send(model.promotion, event(model, _weights(store, model, decision.version), decision))
            store.finish_model_promotion(model.name, decision.decision)


def check(model: BoundModel, weights: Weights) -> None:
    """Raise LedgerError if the contract would reject the weights: nobody would score with them.

    Call it before a decision is written down, which otherwise could never be sent.
    """
    decision = ModelPromotion(version=1, event_id=str(uuid.UUID(int=0)), decided_at=datetime.now(UTC))
    for error in Draft202012Validator(model.promotion.schema).iter_errors(event(model, weights, decision)):
        raise LedgerError(
            f"{model.promotion.event_type} cannot say {error.json_path} = {error.instance}: {error.message}"
        )


def event(model: BoundModel, weights: Weights, decision: ModelPromotion) -> dict[str, Any]:
    """The record of a decision."""
    at = decision.decided_at
    return {
        "event_id": decision.event_id,
        "event_type": model.promotion.event_type,
        "occurred_at": f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z",
        "model": model.name,
        "model_version": decision.version,
        "intercept": weights.intercept,
        **{f"{WEIGHT}{feature}": weight for feature, weight in weights.of.items()},
    }


def value(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def send_to_kafka(say: Callable[[str], None], contract: Contract, event: dict[str, Any]) -> None:
    """Send one event and say where it is; its topic is made where it is missing. Raises LedgerError."""
    headers = (("schema_version", str(contract.version).encode()), ("producer", PRODUCER))
    record = Record(contract.topic, str(event[contract.key]).encode(), value(event), headers)
    try:
        topics.create(project_contracts(), known={*project_contracts().topics} - {contract.topic})
        with Producer() as producer:
            producer.send([record], lambda sent: say(f"sent: {sent}"))
    except (SendError, topics.TopicsError) as error:
        again = "it is written down, and the next `tidemark model train` or `promote` sends it"
        raise LedgerError(f"the promotion is not in Kafka: {error}; {again}") from error


def _weights(store: Store, model: BoundModel, version: int) -> Weights:
    return Weights(**store.model(model.name, version).weights)
