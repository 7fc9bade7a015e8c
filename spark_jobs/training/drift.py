"""Measure how far the world has moved since a model was trained: its own scores, then and now.

held-out scores at its training -> Histogram (kept in the ledger); tonight's scores -> shares in the same bins -> PSI.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spark_jobs.training.linear import Floats

LEAST_SHARE = 1e-4
"""What an empty bin counts as: the logarithm of 0 has no value."""
INNER_DECILES = tuple(tenth / 10 for tenth in range(1, 10))


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
