"""A linear model's weights, and the scores that they give to rows.

features (n x f) + weights -> n scores; above 0 is a yes. The view computes the same sum, from the same weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DIGITS = 6
"""Decimals of a weight. The rounded weights are evaluated, and promoted."""


@dataclass(frozen=True)
class Weights:
    """In the features' own scale; of: feature -> weight."""

    intercept: float
    of: Mapping[str, float]

    @classmethod
    def rounded(cls, intercept: float, features: Sequence[str], weights: Sequence[float]) -> "Weights":
        """The weights, rounded; adding 0.0 turns -0.0 into 0.0."""
        of = {name: round(float(weight), DIGITS) + 0.0 for name, weight in zip(features, weights, strict=True)}
        return cls(round(float(intercept), DIGITS) + 0.0, of)

    def scores(self, names: Sequence[str], features: Floats) -> Floats:
        """The scores of the rows; `names` are the columns'. A feature without a weight counts nothing."""
        weights = np.array([self.of.get(name, 0.0) for name in names])
        return np.asarray(self.intercept + features @ weights, np.float64)
