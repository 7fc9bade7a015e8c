"""Divide the rows of a view among tasks by ranges of its keys, so that each has about as many rows as fit. Pure.

samples of the staged rows and of the files that were built -> KeyRange per unit of work.
The ranges are disjoint and cover all keys, whatever the samples say; these only make them equal.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

Key = tuple[Any, ...]
"""Values of the first key columns, or of all."""
Weighted = tuple[Key, float]
"""A key, and for about how many rows it stands."""


@dataclass(frozen=True)
class KeyRange:
    """Keys from `low` on and below `high`, in the order of `columns`, nulls first; None: no bound."""

    columns: tuple[str, ...]
    low: Key | None = None
    high: Key | None = None

    def expression(self) -> ds.Expression:
        from_low = ds.scalar(True) if self.low is None else ~_below(self.columns, self.low)
        return from_low if self.high is None else from_low & _below(self.columns, self.high)


def _below(columns: Sequence[str], bound: Key) -> ds.Expression:
    column, value = ds.field(columns[0]), bound[0]
    less = ds.scalar(False) if value is None else column.is_null() | (column < value)
    if len(bound) == 1:
        return less
    same = column.is_null() if value is None else column.is_valid() & (column == value)
    return less | (same & _below(columns[1:], bound[1:]))


def order(key: Key) -> tuple[tuple[bool, Any], ...]:
    """What sorts keys as the files have them: nulls first."""
    return tuple((value is not None, value if value is not None else 0) for value in key)


def divided(columns: tuple[str, ...], within: KeyRange, keys: Iterable[Weighted], most: int) -> list[KeyRange]:
    """Ranges that cover `within`, of which `keys` are a sample: of about `most` rows at most, beside those of one key.

    Each key goes where the middle of its rows lies, so that one with many rows leaves the others together.
    """
    weights = defaultdict[Key, float](float)
    for key, weight in keys if columns else ():
        weights[key] += weight
    total = sum(weights.values()) or 1.0
    each, passed, before, cuts = total / (total // most + 1), 0.0, None, list[Key]()
    for key in sorted(weights, key=order):
        part = (passed + weights[key] / 2) // each
        if before is not None and part > before:
            cuts.append(key)
        passed, before = passed + weights[key], part
    return [KeyRange(columns, low, high) for low, high in pairwise([within.low, *cuts, within.high])]


@dataclass(frozen=True)
class KeyedFile:
    """A file of a batch table: its rows, the bounds of its first key (None where they are not known).

    days: the least and greatest day of a bucket; stretch_end: the greatest, of results; None where there is no such.
    """

    address: str
    rows: int
    least: Any = None
    greatest: Any = None
    days: tuple[date | None, date | None] = (None, None)
    stretch_end: int | None = None

    def sample(self) -> list[Weighted]:
        return [((bound,), self.rows / 2) for bound in (self.least, self.greatest)]

    def has_any_of(self, days: Iterable[date]) -> bool:
        """Whether a row may be of one of the days."""
        least, greatest = self.days
        return least is None or greatest is None or any(least <= day <= greatest for day in days)


def apart(columns: tuple[str, ...], files: Iterable[KeyedFile]) -> Iterator[tuple[KeyRange, list[KeyedFile]]]:
    """The files in groups whose first keys do not overlap, each with the range of keys that is its own.

    Without a file there is one group, of all keys.
    """
    groups, end = list[list[KeyedFile]]([[]]), None
    for file in sorted(files, key=lambda file: order((file.least,))):
        if end is not None and file.least is not None and file.least > end:
            groups.append([])
        groups[-1].append(file)
        known = [one.greatest for one in groups[-1]]
        end = None if None in known else max(known)
    lows = [None, *((group[0].least,) for group in groups[1:]), None]
    for group, (low, high) in zip(groups, pairwise(lows), strict=True):
        yield KeyRange(columns, low, high), group


def packed_keys(keys: pa.Table) -> bytes:
    """Keys as bytes, with their types."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, keys.schema) as stream:
        stream.write_table(keys)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked_keys(packed: bytes) -> list[Key]:
    table = pa.ipc.open_stream(packed).read_all()
    return list(zip(*(table.column(name).to_pylist() for name in table.column_names), strict=True))
