"""Which lsns a run decodes: the new ones, and older ones that it decodes again.

(previous cut, cut] + the older lsns -> ranges -> SQL predicates.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import or_

import duckdb
import pyarrow.dataset as ds

MOST_RANGES = 200
"""A predicate has at most this many ranges; the nearest are joined, which only decodes more again."""

Range = tuple[int, int]
"""Both ends included."""


@dataclass(frozen=True)
class Scope:
    """`previous` < new lsns <= `cut`; `again`: ranges of older lsns to be decoded again.

    later: those whose turn comes after these. What is known of them decides nothing, and stays for their turn.
    """

    previous: int
    cut: int
    again: tuple[Range, ...] = ()
    later: tuple[Range, ...] = ()

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

    def sql_kept(self) -> str:
        """Predicate on `lsn`: known facts of lsns that are not decoded now. Past `previous` there are none."""
        return f"lsn <= {self.previous} AND NOT ({self.sql_again()})"

    def sql_history(self) -> str:
        """Predicate on `lsn`: known facts of lsns that are decoded neither now nor later."""
        return f"lsn <= {self.previous} AND NOT ({predicate([*self.again, *self.later])})"

    def portions(self, most: int, records: Callable[[int, int], Iterable[tuple[int, int]]]) -> "Iterator[Scope]":
        """The same lsns in turns, older ones first, with at most so many records to decode again; or with one lsn.

        records: the lsns from one to another that have landed, in order, each with its number of records.
        """
        turns = [*_turns(self.again, most, records)] or [()]
        for number, turn in enumerate(turns, 1):
            is_last = number == len(turns)
            later = tuple(one for after in turns[number:] for one in after)
            yield Scope(self.previous, self.cut if is_last else self.previous, turn, later)


def _turns(
    ranges: Iterable[Range], most: int, records: Callable[[int, int], Iterable[tuple[int, int]]]
) -> Iterator[tuple[Range, ...]]:
    turn, size = list[Range](), 0
    for first, last in ranges:
        for lsn, count in records(first, last):
            if size and size + count > most:
                yield (*turn, (first, lsn - 1)) if lsn > first else tuple(turn)
                turn, size, first = [], 0, lsn
            size += count
        turn.append((first, last))
    if turn:
        yield tuple(turn)


def scope(previous: int, cut: int, again: Iterable[Range] = ()) -> Scope:
    """The scope of a run; `again`: older lsns to decode again."""
    older = ((first, min(last, previous)) for first, last in again if first <= previous)
    return Scope(previous, cut, tuple(joined(older)))


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges that cover these, ascending; only joined across gaps where there would be too many."""
    apart = _joined_across(ranges, 1)
    gaps = sorted((after[0] - before[1] for before, after in pairwise(apart)), reverse=True)
    return apart if len(apart) <= MOST_RANGES else _joined_across(apart, gaps[MOST_RANGES - 1])


def _joined_across(ranges: Iterable[Range], widest: int) -> list[Range]:
    made: list[Range] = []
    for first, last in sorted(ranges):
        if made and first - made[-1][1] <= widest:
            made[-1] = (made[-1][0], max(last, made[-1][1]))
        else:
            made.append((first, last))
    return made


def covering(con: duckdb.DuckDBPyConnection, lsns: str) -> list[Range]:
    """Ranges that cover the column `lsn` of a SELECT, as `joined` has them; the lsns themselves stay in DuckDB."""
    ranges: list[Range] = con.execute(f"""
        WITH gaps AS MATERIALIZED (
            SELECT lsn, lsn - lag(lsn, 1, lsn) OVER (ORDER BY lsn) AS gap FROM (SELECT DISTINCT lsn FROM ({lsns}))),
        joins AS (SELECT greatest(1, (SELECT gap FROM gaps ORDER BY gap DESC LIMIT 1 OFFSET {MOST_RANGES - 1})) AS gap)
        SELECT min(lsn), max(lsn) FROM (
            SELECT lsn, count_if(gaps.gap > joins.gap) OVER (ORDER BY lsn) AS number FROM gaps, joins)
        GROUP BY number ORDER BY ALL""").fetchall()
    return ranges


def within(ranges: Iterable[Range]) -> ds.Expression:
    """Whether `lsn` is in one of the ranges."""
    lsn = ds.field("lsn")
    return reduce(or_, ((lsn >= first) & (lsn <= last) for first, last in ranges), ds.scalar(False))


def predicate(ranges: Iterable[Range]) -> str:
    return " OR ".join(f"lsn BETWEEN {int(first)} AND {int(last)}" for first, last in ranges) or "FALSE"
