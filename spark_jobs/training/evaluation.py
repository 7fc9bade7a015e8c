"""How good a model is on the held-out examples, how far the world has moved since, and whether it is promoted.

scores + labels -> Confusion -> precision, recall, F1 -> Decision. A candidate is promoted if it is not worse than the
model in force. Held-out scores at its training -> Histogram (kept in the ledger); tonight's scores -> shares in the
same bins -> PSI.

The measure is F1, because either of precision and recall alone is won by flagging nearly nothing, or everything.
A tie goes to the candidate, because it has seen newer examples; but equal weights are not promoted: that would put a
record into the log that changes no score.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from spark_jobs.training.linear import Bools, Floats, Weights

LEAST_SHARE = 1e-4
"""What an empty bin counts as: the logarithm of 0 has no value."""
INNER_DECILES = tuple(tenth / 10 for tenth in range(1, 10))


@dataclass(frozen=True)
class Confusion:
    """Counts: flagged and a yes (tp), flagged and a no (fp), missed (fn), let pass rightly (tn)."""

    tp: int
    fp: int
    fn: int
    tn: int

    @property
    def precision(self) -> float:
        """tp / (tp + fp): of those flagged, how many are a yes; 0 where none is flagged."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """tp / (tp + fn): of those that are a yes, how many are flagged; 0 where there is none."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def f1(self) -> float:
        """2 tp / (2 tp + fp + fn), the harmonic mean of precision and recall (van Rijsbergen 1979, with beta = 1)."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


def confusion(scores: Floats, labels: Bools) -> Confusion:
    """A score above 0 flags."""
    flagged = scores > 0
    return Confusion(
        tp=int((flagged & labels).sum()),
        fp=int((flagged & ~labels).sum()),
        fn=int((~flagged & labels).sum()),
        tn=int((~flagged & ~labels).sum()),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


@dataclass(frozen=True)
class Evaluated:
    """A model, evaluated tonight: its scores of the held-out examples; version: None if it has none yet.

    cut: what it was trained up to.
    """

    weights: Weights
    scores: Floats
    confusion: Confusion
    cut: int
    version: int | None = None


class Decision(NamedTuple):
    is_promoted: bool
    reason: str


def decide(candidate: Evaluated, in_force: Evaluated | None, least_f1: float) -> Decision:
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


@dataclass(frozen=True)
class Histogram:
    """`edges`: the inner deciles of the scores, equal ones once; `shares`: of scores in (edge, next edge], in order."""

    edges: Sequence[float]
    shares: Sequence[float]

    @classmethod
    def of(cls, scores: Floats) -> "Histogram":
        edges = np.unique(np.quantile(scores, INNER_DECILES, method="lower"))
        return cls(tuple(edges.tolist()), _shares(edges, scores))

    def psi(self, scores: Floats) -> float:
        """The population stability index: sum over bins of (now - then) * ln(now / then), of shares.

        0: distributed as it was; commonly below 0.1 is called no change, above 0.25 a great one. N. Siddiqi, Credit
        Risk Scorecards (Wiley 2006), chapter 9; it is Jeffreys' divergence (1946) of the two histograms.
        """
        then = np.maximum(self.shares, LEAST_SHARE)
        now = np.maximum(_shares(np.array(self.edges), scores), LEAST_SHARE)
        return float(((now - then) * np.log(now / then)).sum())


def _shares(edges: Floats, scores: Floats) -> tuple[float, ...]:
    bins = np.searchsorted(edges, scores, side="left")
    counts = np.bincount(bins, minlength=len(edges) + 1) / max(len(scores), 1)
    shares: list[float] = counts.tolist()
    return tuple(shares)


def disagreement(scores: Floats, others: Floats) -> float:
    """The share of rows that exactly one of two models flags."""
    return float(((scores > 0) != (others > 0)).mean()) if len(scores) else 0.0
