"""A trained model for people: one line of a list, or all of it.

ledger rows -> dictionaries for tables.
"""

from collections.abc import Sequence
from typing import Any

from spark_jobs.ledger.schema import Model, ModelPromotion

Rows = list[dict[str, Any]]


def state(model: Model, promotions: Sequence[ModelPromotion]) -> str:
    """The version's state: in force, intent (decided, its record not yet in Kafka), promoted (once), refused."""
    own = [promotion for promotion in promotions if promotion.version == model.version]
    sent = [promotion for promotion in promotions if promotion.sent_at is not None]
    if any(promotion.sent_at is None for promotion in own):
        return "intent"
    if sent and sent[-1].version == model.version:
        return "in force"
    return "promoted" if own else "refused"


def listed(model: Model, promotions: Sequence[ModelPromotion]) -> dict[str, Any]:
    evaluated = model.metrics["candidate"]
    measures = {name: f"{evaluated[name]:.3f}" for name in ("precision", "recall", "f1")}
    return {
        "model": model.model,
        "version": model.version,
        "state": state(model, promotions),
        "run": model.run_id,
        "cut": model.cut,
        "trained_at": model.trained_at,
        **measures,
        "reason": model.reason,
    }


def weights(model: Model) -> Rows:
    of = {"intercept": model.weights["intercept"], **model.weights["of"]}
    return [{"feature": name, "weight": weight} for name, weight in of.items()]


def confusion(evaluated: dict[str, Any]) -> Rows:
    """The confusion table: a row per true class, a column per answer of the model."""
    return [
        {"": "a yes", "flagged": evaluated["tp"], "let pass": evaluated["fn"]},
        {"": "a no", "flagged": evaluated["fp"], "let pass": evaluated["tn"]},
    ]


def compared(model: Model) -> Rows:
    """The version and the one that was in force, on the same held-out examples."""
    evaluated = [{"version": model.version, **model.metrics["candidate"]}, model.metrics["in_force"]]
    names = ("precision", "recall", "f1")
    return [{"version": row["version"], **{name: f"{row[name]:.4f}" for name in names}} for row in evaluated if row]


def lines(model: Model, promotions: Sequence[ModelPromotion]) -> list[str]:
    """What else there is to say, in sentences."""
    of, drift = model.metrics["examples"], model.metrics["drift"]
    sentences = [
        f"{model.model} version {model.version}: {state(model, promotions)}; {model.reason}",
        f"trained by run {model.run_id} up to lsn {model.cut}, in {model.seconds:.1f} s",
        f"trained on {of['training']:,} examples, {of['training_yes']:,} of them a yes; "
        f"evaluated on {of['held_out']:,} held out, {of['held_out_yes']:,} of them a yes",
    ]
    if drift is not None:
        version = model.metrics["in_force"]["version"]
        sentences.append(
            f"drift of version {version} since its training: stability index {drift['psi']:.4f}; "
            f"the two disagree on {drift['disagreement']:.2%}"
        )
    decided = [decision for decision in promotions if decision.version == model.version]
    return sentences + [f"decision {p.decision}, {p.decided_at:%Y-%m-%d %H:%M:%S}: {p.reason}" for p in decided]
