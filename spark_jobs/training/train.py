"""`train`: a new version of a model from what a published run has built; promoted if it is not worse.

run's results + labels up to its cut -> examples -> fit -> evaluated beside the model in force -> ledger -> (promotion)
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple

from spark_jobs.ledger.schema import Build, Model
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.registry.models import BoundModel
from spark_jobs.training import examples, promotion
from spark_jobs.training.evaluation import Evaluated, Histogram, confusion, decide, disagreement
from spark_jobs.training.examples import Examples, Part
from spark_jobs.training.linear import Weights

Fit = Callable[[tuple[str, ...], Part], Weights]


class Result(NamedTuple):
    """`model`: the run's version, or None where nothing was trained; `said`: why, in words."""

    model: Model | None
    said: str


def train(store: Store, model: BoundModel, run_id: str, fit: Fit, send: promotion.Send) -> Result:
    """Train once per run: a retry uses the recorded version, and sends its promotion if that has not been sent."""
    promotion.roll_forward(store, model, send)
    known = store.model_of_run(model.name, run_id)
    if known is None:
        build = _build(store, model, run_id)
        if build is None:
            return Result(None, f"run {run_id} had nothing new: nothing is trained")
        assert build.results_version is not None
        split = examples.read(model, build.results_version, build.cut)
        if (lacking := split.lacking()) is not None:
            return Result(None, f"nothing is trained: {lacking}")
        known = _trained(store, model, build, split, fit)
        promotion.roll_forward(store, model, send)
    return Result(known, f"{'promoted' if known.is_accepted else 'refused'}: {known.reason}")


def _build(store: Store, model: BoundModel, run_id: str) -> Build | None:
    """The build of the model's view that the run has published (I17); None if it had nothing new."""
    run = store.run(run_id)
    if run is None or run.state != "finished":
        state = "is not known" if run is None else f"is {run.state} after {run.step}"
        raise LedgerError(f"run {run_id} {state}: training follows `tidemark batch publish --run-id {run_id}`")
    if run.summary.get("nothing_new"):
        return None
    build = store.builds(run_id).get(model.view.id)
    if build is None:
        raise LedgerError(f"run {run_id} did not build {model.view.id}: train on a run that has")
    return build


def _trained(store: Store, model: BoundModel, build: Build, split: Examples, fit: Fit) -> Model:
    started = time.monotonic()
    weights = fit(split.names, split.training)
    seconds = time.monotonic() - started
    promotion.check(model, weights)
    candidate = _evaluated(weights, split, build.cut)
    old = store.model_in_force(model.name)
    in_force = None if old is None else _evaluated(Weights(**old.weights), split, old.cut, old.version)
    decision = decide(candidate, in_force, model.declaration.least_f1)
    return store.record_model(
        Model(
            model=model.name,
            run_id=build.run_id,
            cut=build.cut,
            seconds=seconds,
            weights=asdict(weights),
            metrics=_metrics(split, candidate, in_force, old),
            is_accepted=decision.is_promoted,
            reason=decision.reason,
        )
    )


def _evaluated(weights: Weights, split: Examples, cut: int, version: int | None = None) -> Evaluated:
    scores = weights.scores(split.names, split.held_out.features)
    return Evaluated(weights, scores, confusion(scores, split.held_out.labels), cut, version)


def _metrics(split: Examples, candidate: Evaluated, in_force: Evaluated | None, old: Model | None) -> dict[str, Any]:
    """What the ledger keeps; `histogram` of the candidate's held-out scores is what later drift is measured from."""
    metrics: dict[str, Any] = {
        "examples": split.counts(),
        "candidate": candidate.confusion.as_json(),
        "histogram": asdict(Histogram.of(candidate.scores)),
    }
    if in_force is None or old is None:
        return metrics | {"in_force": None, "drift": None}
    psi = Histogram(**old.metrics["histogram"]).psi(in_force.scores)
    drift = {"psi": psi, "disagreement": disagreement(candidate.scores, in_force.scores)}
    return metrics | {"in_force": {"version": in_force.version, **in_force.confusion.as_json()}, "drift": drift}
