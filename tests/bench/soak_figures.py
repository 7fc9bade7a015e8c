"""What SOAK counts by days of its clock, and the slopes of it."""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

Row = dict[str, Any]


@dataclass
class Figures:
    """Per figure its values, day by day; slopes are of the whole weeks after the days of `filling`."""

    filling: int
    days: dict[str, list[list[float]]] = field(default_factory=lambda: defaultdict(list))
    day: int = 0

    def add(self, name: str, value: float) -> None:
        days = self.days[name]
        days += [[] for _ in range(self.day + 1 - len(days))]
        days[self.day].append(value)

    @contextmanager
    def cpu(self, name: str) -> Iterator[None]:
        """Milliseconds of CPU time of the process: other work on the machine does not count."""
        begun = time.process_time()
        yield
        self.add(name, (time.process_time() - begun) * 1000)

    def rows(self) -> list[Row]:
        """A row per figure, by the medians of its days: its second week, the first and last that count, the slope."""
        return [
            _row(name, [statistics.median(day) for day in days if day], self.filling)
            for name, days in self.days.items()
        ]


def _row(name: str, days: list[float], filling: int) -> Row:
    """By weeks, as files of partials go up and down within one; the slope is the median one between two weeks.

    spread_percent: of those weeks; a slope far below it says little.
    """
    filled = len(days) - filling
    steady = days[-(filled // 7 * 7) :] if filled >= 7 else days
    weeks = [statistics.mean(steady[first : first + 7]) for first in range(0, len(steady), 7)]
    slopes = [(b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(weeks), 2)] or [0.0]
    return {
        "figure": name,
        "days": len(days),
        "second_week": statistics.mean(days[7:14] or days),
        "first": weeks[0],
        "last": weeks[-1],
        "most": max(days),
        "spread_percent": 100 * (max(weeks) - min(weeks)) / (statistics.mean(weeks) or 1),
        "slope_percent": 100 * statistics.median(slopes) * (len(weeks) - 1) / (statistics.mean(weeks) or 1),
    }
