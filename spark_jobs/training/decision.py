"""Decide whether a candidate is promoted: only if it is not worse than the model in force on the held-out examples.

The measure is F1, because either of precision and recall alone is won by flagging nearly nothing, or everything.
A tie goes to the candidate, because it has seen newer examples; but equal weights are not promoted: that would put a
record into the log that changes no score.
"""

from dataclasses import dataclass

from spark_jobs.training.evaluation import Confusion
from spark_jobs.training.linear import Weights


@dataclass(frozen=True)
class Judged:
    """A model, evaluated tonight; cut: what it was trained up to; version: None if it has none yet."""

    weights: Weights
    confusion: Confusion
    cut: int
    version: int | None = None


@dataclass(frozen=True)
class Decision:
    is_promoted: bool
    reason: str


def decide(candidate: Judged, in_force: Judged | None, least_f1: float) -> Decision:
    """Whether to promote, with the reason in words. `least_f1` counts where no model is in force to compare with."""
    new = candidate.confusion.f1
    if in_force is None:
        if new < least_f1:
            return Decision(False, f"F1 {new:.4f}: a first model needs {least_f1}")
        return Decision(True, f"F1 {new:.4f}; no model was in force")
    named, old = f"version {in_force.version}", in_force.confusion.f1
    if in_force.cut > candidate.cut:
        return Decision(False, f"{named}, in force, was trained up to lsn {in_force.cut}, this up to {candidate.cut}")
    if candidate.weights == in_force.weights:
        return Decision(False, f"it has the weights of {named}, which is in force")
    if new < old:
        return Decision(False, f"worse: F1 {new:.4f}, of {named}, in force, {old:.4f}")
    return Decision(True, f"not worse: F1 {new:.4f}, of {named}, in force until now, {old:.4f}")
