"""How good a model is on the held-out examples: a confusion table, and what follows from it.

scores + labels -> Confusion -> precision, recall, F1.
"""

from dataclasses import asdict, dataclass
from typing import Any

from spark_jobs.training.linear import Bools, Floats


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
