"""What a check found: a sentence that holds, does not hold, or could not be looked at.

Law, query of its breaches or another check -> Finding -> table, JSON, exit code.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

import duckdb

SHOWN = 10
"""Breaches named in full; the rest are counted."""


class State(StrEnum):
    HOLDS = "holds"
    BREACH = "breach"
    UNABLE = "unable"  # it could not be looked at: neither good nor bad news
    ABSENT = "nothing yet"  # there is nothing to look at, by nature
    SKIPPED = "not looked at"  # a sample leaves it out: its time is over, or there is too much of it


class Unable(Exception):
    """A check that cannot look; the text says what is missing."""

    state = State.UNABLE


class Absent(Exception):
    """There is nothing that the law speaks of; the text says why."""

    state = State.ABSENT


class Skipped(Exception):
    """A sample leaves it out; the text says why."""

    state = State.SKIPPED


@dataclass(frozen=True)
class Finding:
    """`checked`: how many things were compared; a check that compared nothing never says HOLDS."""

    invariant: str
    law: str
    state: State
    checked: int = 0
    unit: str = ""
    breaches: int = 0
    first: tuple[str, ...] = ()
    note: str = ""
    seconds: float = field(default=0.0, compare=False)

    @property
    def key(self) -> str:
        return f"{self.invariant} {self.law}"


@dataclass(frozen=True)
class Law:
    """A sentence that should hold, of which invariant (docs/architecture.md), and in what its checks count."""

    invariant: str
    text: str
    unit: str

    @property
    def key(self) -> str:
        """What tells it from others."""
        return f"{self.invariant} {self.text}"

    def finding(self, checked: int, breaches: Sequence[str], count: int | None = None, note: str = "") -> Finding:
        """HOLDS where nothing breaches and something was compared.

        `count`: how many breaches there are where `breaches` names only the first.
        """
        count = len(breaches) if count is None else count
        state = State.BREACH if count else State.HOLDS if checked else State.ABSENT
        return Finding(self.invariant, self.text, state, checked, self.unit, count, tuple(breaches[:SHOWN]), note)

    def by_query(self, con: duckdb.DuckDBPyConnection, query: str, checked: int, note: str = "") -> Finding:
        """The finding of a query as of `breaches`."""
        return self.finding(checked, *breaches(con, query), note=note)

    def looked(self, check: Callable[[], Finding]) -> Finding:
        """Run the check and time it. Whatever keeps it from looking is a finding of its own, and hides no other."""
        started = time.perf_counter()
        try:
            finding = check()
        except (Absent, Unable, Skipped) as reason:
            finding = Finding(self.invariant, self.text, reason.state, note=str(reason))
        except Exception as error:
            note = next(iter(str(error).splitlines()), "no reason given")
            finding = Finding(self.invariant, self.text, State.UNABLE, note=f"{type(error).__name__}: {note}")
        return replace(finding, seconds=round(time.perf_counter() - started, 2))


Check = tuple[Law, Callable[[], Finding]]
"""A law, and how to look whether it holds."""


def breaches(con: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], int]:
    """The first breaches as sentences (the query's only column, `said`), and how many there are."""
    first = con.execute(f"SELECT said, count(*) OVER () FROM ({query}) ORDER BY said LIMIT {SHOWN}").fetchall()
    return [said for said, _ in first], first[0][1] if first else 0


def number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    """The only value of a query, a count."""
    [(value,)] = con.execute(query).fetchall()
    return int(value)
