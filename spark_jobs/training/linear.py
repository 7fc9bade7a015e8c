"""A linear model's weights, and what they make of rows.

features (n x f) + weights -> n scores; above 0 is a yes. The view computes the same sum, from the same weights.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

DIGITS = 6
"""Decimals of a weight. What is judged are the rounded weights, and they are what is promoted."""


@dataclass(frozen=True)
class Weights:
    """In the features' own scale; of: feature -> weight."""

    intercept: float
    of: Mapping[str, float]

    @classmethod
    def rounded(cls, intercept: float, features: Sequence[str], weights: Sequence[float]) -> "Weights":
        """Adding 0.0 makes 0.0 of -0.0."""
        of = {name: round(float(one), DIGITS) + 0.0 for name, one in zip(features, weights, strict=True)}
        return cls(round(float(intercept), DIGITS) + 0.0, of)

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> "Weights":
        return cls(kept["intercept"], kept["of"])

    def as_json(self) -> dict[str, Any]:
        return {"intercept": self.intercept, "of": dict(self.of)}

    def scores(self, names: Sequence[str], features: Floats) -> Floats:
        """Scores of the rows; `names` are the columns'. A feature that these weights do not know has no part in it."""
        weights = np.array([self.of.get(name, 0.0) for name in names])
        return np.asarray(self.intercept + features @ weights, np.float64)
