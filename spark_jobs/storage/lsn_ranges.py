"""Which lsns a run decodes: the new ones, and older ones that it decodes again. Pure.

(previous cut, cut] + the older lsns -> ranges -> SQL predicates.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

import pyarrow.dataset as ds

MOST_RANGES = 200
"""A predicate has at most this many ranges; the nearest are joined, which only decodes more again."""

Range = tuple[int, int]
"""Both ends included."""


@dataclass(frozen=True)
class Scope:
    """`previous` < new lsns <= `cut`; `again`: ranges of older lsns to be decoded again."""

    previous: int
    cut: int
    again: tuple[Range, ...] = ()

    @property
    def is_empty(self) -> bool:
        return self.cut <= self.previous and not self.again

    def ranges(self, *, only_new: bool = False) -> list[Range]:
        new = [(self.previous + 1, self.cut)] if self.cut > self.previous else []
        return new if only_new else [*self.again, *new]

    def sql(self, *, only_new: bool = False) -> str:
        """Predicate on `lsn`: the lsns that are decoded."""
        return predicate(self.ranges(only_new=only_new))

    def expression(self, *, only_new: bool = False) -> ds.Expression:
        """The same for Arrow."""
        return within(self.ranges(only_new=only_new))

    def sql_again(self) -> str:
        return predicate(self.again)

    def sql_history(self) -> str:
        """Predicate on `lsn`: known facts of lsns that are not decoded again. Past `previous` there are none."""
        return f"lsn <= {self.previous} AND NOT ({self.sql_again()})"


def scope(previous: int, cut: int, lsns: Iterable[int] = ()) -> Scope:
    """The scope of a run; `lsns`: those to decode again."""
    return Scope(previous, cut, tuple(ranges_of(n for n in lsns if n <= previous)))


def ranges_of(lsns: Iterable[int]) -> list[Range]:
    """Ranges that cover all lsns, ascending; only joined across gaps where there would be too many."""
    ordered = sorted(set(lsns))
    gaps = sorted((after - before for before, after in pairwise(ordered)), reverse=True)
    widest = gaps[MOST_RANGES - 1] if len(gaps) >= MOST_RANGES else 1
    ranges: list[Range] = []
    for lsn in ordered:
        if ranges and lsn - ranges[-1][1] <= widest:
            ranges[-1] = (ranges[-1][0], lsn)
        else:
            ranges.append((lsn, lsn))
    return ranges


def within(ranges: Iterable[Range]) -> ds.Expression:
    """Whether `lsn` is in one of the ranges."""
    lsn = ds.field("lsn")
    return reduce(or_, ((lsn >= first) & (lsn <= last) for first, last in ranges), ds.scalar(False))


def predicate(ranges: Iterable[Range]) -> str:
    return " OR ".join(f"lsn BETWEEN {int(first)} AND {int(last)}" for first, last in ranges) or "FALSE"
