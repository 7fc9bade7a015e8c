"""The identities of the recent past, by which the speed layer recognises a repeated event.

identities of micro-batches -> IdWindow.add; identities of a new one -> IdWindow.known -> a mask.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from spark_jobs.engine.dedupe import WORDS, Words

FILTER = 8  # buckets of a run's filter for each id, at least
RUNS = 8  # the window forgets in steps of about a RUNS-th of its size
MOST_BETWEEN = timedelta(seconds=60)
"""Time between two micro-batches counts up to this: an outage, after which producers repeat, empties no window."""


def counted(earlier: datetime, later: datetime) -> timedelta:
    """The time between two micro-batches that follow each other, as the window counts it."""
    return min(max(later - earlier, timedelta(0)), MOST_BETWEEN)


@dataclass(frozen=True)
class _Run:
    """Identities of neighbouring micro-batches, sorted by their first word, and a filter of the words' leading bits."""

    first: Words
    second: Words
    filter: NDArray[np.bool_]
    newest_lsn: int
    newest_at: timedelta  # on the window's own clock

    def __len__(self) -> int:
        return len(self.first)

    def knows(self, first: Words, second: Words) -> NDArray[np.int64]:
        """Positions of the identities that the run holds."""
        waiting = np.flatnonzero(self.filter[first >> _shift(self.filter)])
        at = np.searchsorted(self.first, first[waiting])
        positions = []
        while waiting.size:  # more than one turn only where two identities share a first word
            inside = at < len(self)
            waiting, at = waiting[inside], at[inside]
            near = self.first[at] == first[waiting]
            same = near & (self.second[at] == second[waiting])
            positions.append(waiting[same])
            waiting, at = waiting[near & ~same], at[near & ~same] + 1
        return np.concatenate(positions) if positions else waiting


class IdWindow:
    """The identities that the speed layer has seen lately.

    Sorted runs, merged when neighbours are of like size (a log-structured merge tree in memory): `add` costs O(log n)
    an id over time, `known` a look into the filter of each of 10-20 runs; 24-32 bytes an id. Whole runs are forgotten,
    so up to an eighth more than `max_ids`, and somewhat longer than `seconds`, is remembered; never less. `seconds` are
    those of a log that grows: see `counted`.
    """

    def __init__(self, seconds: float, max_ids: int) -> None:
        self._keep = timedelta(seconds=seconds)
        self._max_ids = max_ids
        self._runs: list[_Run] = []
        self._last: datetime | None = None
        self._clock = timedelta(0)

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    @property
    def newest_lsn(self) -> int | None:
        return self._runs[-1].newest_lsn if self._runs else None

    def known(self, ids: bytes) -> NDArray[np.bool_]:
        """A mask over `ids` (16 bytes each): which of them the window holds."""
        first, second = _split(ids)
        order = np.argsort(first)  # neighbouring searches touch the same memory
        first, second = first[order], second[order]
        mask = np.zeros(len(order), bool)
        for run in self._runs:
            mask[order[run.knows(first, second)]] = True
        return mask

    def add(self, lsn: int, ids: bytes, at: datetime) -> None:
        """Remember the identities of one micro-batch; ascending lsns. Then forget what is too old or too much."""
        if self._runs and lsn <= self._runs[-1].newest_lsn:
            raise ValueError(f"lsn {lsn} after {self._runs[-1].newest_lsn}: the window is filled in log order")
        self._clock += counted(self._last or at, at)
        self._last = at
        if ids:
            self._runs.append(_run(*_split(ids), lsn, self._clock))
            self._merge()
        self._forget()

    def _merge(self) -> None:
        most = max(self._max_ids // RUNS, 1)
        while len(self._runs) > 1:
            older, newer = self._runs[-2:]
            if len(older) > 2 * len(newer) or len(older) + len(newer) > most:
                return
            first, second = np.r_[older.first, newer.first], np.r_[older.second, newer.second]
            self._runs[-2:] = [_run(first, second, newer.newest_lsn, newer.newest_at)]

    def _forget(self) -> None:
        while self._runs and self._runs[0].newest_at < self._clock - self._keep:
            del self._runs[0]
        while self._runs and len(self) - len(self._runs[0]) >= self._max_ids:
            del self._runs[0]


def _run(first: Words, second: Words, lsn: int, at: timedelta) -> _Run:
    order = np.argsort(first, kind="stable")  # of two sorted runs: one merge
    first = first[order]
    present = np.zeros(FILTER << len(first).bit_length(), bool)
    present[first >> _shift(present)] = True
    return _Run(first, second[order], present, lsn, at)


def _shift(present: NDArray[np.bool_]) -> np.uint64:
    return np.uint64(65 - len(present).bit_length())


def _split(ids: bytes) -> tuple[Words, Words]:
    both = np.frombuffer(ids, WORDS)
    return both["first"], both["second"]
