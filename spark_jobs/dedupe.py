"""Which facts are the first of their identity, and which repeat one.

facts -> first_of_each -> (winners, duplicates); facts, verdicts -> divided; Window: identities of the recent past.

The order that decides is (lsn, topic, partition, offset): the lowest wins, in both layers. An identity is the 16 bytes
of `facts.identity`, handled as two 64-bit words; several of them travel as one `bytes`, 16 each (`packed`).
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.tables import COORDINATES

WIDTH = 16
FILTER = 8  # buckets of a run's filter for each id, at least
RUNS = 8  # the window forgets in steps of about a RUNS-th of its size
Words = NDArray[np.uint64]

_ORDER = [(name, "ascending") for name, _ in COORDINATES]
_WORDS = np.dtype([("first", "<u8"), ("second", "<u8")])


def packed(facts: pa.Table) -> bytes:
    """The identities of facts, 16 bytes each, in row order."""
    return b"".join(_words(chunk).tobytes() for chunk in facts.column("identity").chunks)


def first_of_each(facts: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(winners, duplicates): one row an identity, the earliest in the log; both keep the order of their rows."""
    if not (suspects := _repeated(np.frombuffer(packed(facts), _WORDS)["first"])).size:
        return facts, facts.slice(0, 0)
    few = facts.select([*dict(COORDINATES), "identity"]).take(suspects)
    ordered = few.append_column("row", pa.array(suspects)).sort_by(_ORDER)
    _, first = np.unique(np.frombuffer(packed(ordered), f"S{WIDTH}"), return_index=True)
    loses = np.ones(len(ordered), bool)
    loses[first] = False
    keep = np.ones(facts.num_rows, bool)
    keep[ordered["row"].to_numpy()[loses]] = False
    return facts.filter(pa.array(keep)), facts.filter(pa.array(~keep))


def without(facts: pa.Table, coordinates: pa.Table) -> pa.Table:
    """The facts that are not listed, as of `divided`."""
    return divided(facts, coordinates)[0]


def divided(facts: pa.Table, coordinates: pa.Table) -> tuple[pa.Table, pa.Table]:
    """(facts that are not listed, facts that are) by (topic, partition, offset), and lsn where `coordinates` has it."""
    if not coordinates.num_rows:
        return facts, facts.slice(0, 0)
    names = [name for name, _ in COORDINATES if name in coordinates.column_names]
    places = facts.select(names).append_column("row", pa.array(np.arange(facts.num_rows)))
    listed = coordinates.select(names).cast(facts.select(names).schema)
    lost = places.join(listed, keys=names, join_type="left semi", use_threads=False)["row"]
    if not len(lost):
        return facts, facts.slice(0, 0)
    keep = np.ones(facts.num_rows, bool)
    keep[lost.to_numpy()] = False
    return facts.filter(pa.array(keep)), facts.filter(pa.array(~keep))


@dataclass(frozen=True)
class _Run:
    """Identities of neighbouring micro-batches, sorted by their first word, and a filter of the words' leading bits."""

    first: Words
    second: Words
    filter: NDArray[np.bool_]
    newest_lsn: int
    newest_at: datetime

    def __len__(self) -> int:
        return len(self.first)

    def knows(self, first: Words, second: Words) -> NDArray[np.int64]:
        """Positions of the identities that the run holds."""
        waiting = np.flatnonzero(self.filter[first >> _shift(self.filter)])
        at = np.searchsorted(self.first, first[waiting])
        found = []
        while waiting.size:  # more than one turn only where two identities share a first word
            inside = at < len(self)
            waiting, at = waiting[inside], at[inside]
            near = self.first[at] == first[waiting]
            same = near & (self.second[at] == second[waiting])
            found.append(waiting[same])
            waiting, at = waiting[near & ~same], at[near & ~same] + 1
        return np.concatenate(found) if found else waiting


class Window:
    """The identities that the speed layer has seen lately.

    Sorted runs, merged when neighbours are of like size (a log-structured merge tree in memory): `add` costs O(log n)
    an id over time, `known` a look into the filter of each of 10-20 runs; 24-32 bytes an id. Whole runs are forgotten,
    so up to an eighth more than `max_ids`, and somewhat longer than `seconds`, is remembered; never less.
    """

    def __init__(self, seconds: float, max_ids: int) -> None:
        self._keep = timedelta(seconds=seconds)
        self._max_ids = max_ids
        self._runs: list[_Run] = []

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
        if ids:
            self._runs.append(_run(*_split(ids), lsn, at))
            self._merge()
        self._forget(at)

    def _merge(self) -> None:
        most = max(self._max_ids // RUNS, 1)
        while len(self._runs) > 1:
            older, newer = self._runs[-2:]
            if len(older) > 2 * len(newer) or len(older) + len(newer) > most:
                return
            first, second = np.r_[older.first, newer.first], np.r_[older.second, newer.second]
            self._runs[-2:] = [_run(first, second, newer.newest_lsn, newer.newest_at)]

    def _forget(self, now: datetime) -> None:
        while self._runs and self._runs[0].newest_at < now - self._keep:
            del self._runs[0]
        while self._runs and len(self) - len(self._runs[0]) >= self._max_ids:
            del self._runs[0]


def _run(first: Words, second: Words, lsn: int, at: datetime) -> _Run:
    order = np.argsort(first, kind="stable")  # of two sorted runs: one merge
    first = first[order]
    present = np.zeros(FILTER << len(first).bit_length(), bool)
    present[first >> _shift(present)] = True
    return _Run(first, second[order], present, lsn, at)


def _shift(present: NDArray[np.bool_]) -> np.uint64:
    return np.uint64(65 - len(present).bit_length())


def _split(ids: bytes) -> tuple[Words, Words]:
    both = np.frombuffer(ids, _WORDS)
    return both["first"], both["second"]


def _words(identity: pa.FixedSizeBinaryArray) -> NDArray[np.void]:
    if identity.null_count:
        raise ValueError("a fact without identity")
    data = identity.buffers()[1]
    if data is None:
        return np.empty(0, _WORDS)
    return np.frombuffer(data, _WORDS, len(identity), identity.offset * WIDTH)


def _repeated(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Positions whose word occurs more than once: every duplicate, and by chance another."""
    ordered = np.sort(words)
    if not (ordered[1:] == ordered[:-1]).any():  # the usual case
        return np.empty(0, np.int64)
    order = np.argsort(words)
    same = np.flatnonzero(words[order[1:]] == words[order[:-1]])
    return np.unique(order[np.r_[same, same + 1]])
