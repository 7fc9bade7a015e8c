"""Which files of speed.partials are joined: periods of the clock that grow, from a span to a week.

add actions + the time -> portions, each of bounded work. A file's `span` is the second since 1970 at which its period
began. How long that period is follows from the clock: it is the longest one that has settled. So the files of a kind of
row that a reader opens are few for the last minutes, and few for every day before. Pure.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.settings import settings
from spark_jobs.speed.partials_table import OPEN

MANY_COMMITS = 16
"""Files of so many micro-batches wait for compaction: a reader opens them all, and each costs milliseconds."""
LENGTHS = (15 * 60, 3600, 6 * 3600, 24 * 3600, 7 * 24 * 3600)
"""Seconds of the periods after the span; each has four to seven of those before it."""
SETTLED = 7
"""A period is joined a seventh of its length after its end: a day, when the nightly run has published it. Until then a
reader of what is past the cut would open the file for its last hours."""
MOST_ROWS, MOST_BYTES = 500_000, 64 * 2**20
"""What is joined at a time, and at most in one file. A file of half as much is not written again."""


@dataclass(frozen=True)
class Join:
    """Files (paths of add actions) whose rows go, kind by kind, into the period that began at `into`."""

    paths: tuple[str, ...]
    into: int


def began(now: float) -> int:
    """The beginning of the current span, in seconds since 1970."""
    return int(now) // settings().span_seconds * settings().span_seconds


def period(start: int, now: float) -> int | None:
    """The beginning of the longest period that has settled and that has `start` in it; None where none has."""
    settled, span = None, settings().span_seconds
    for length in (span, *(length for length in LENGTHS if length > span)):
        first = start // length * length
        if first + length + length // SETTLED > now:
            break
        settled = first
    return settled


def portion(added: pa.Table, now: float) -> list[Join]:
    """What to join next; empty where nothing is worth it. `added`: the flat add actions of speed.partials."""
    is_open = pc.equal(added["partition.span"], OPEN)
    committed = added.filter(is_open)["path"].to_pylist()
    joins = [Join(tuple(committed), began(now))] if len(committed) >= MANY_COMMITS else []
    columns = ["path", "partition.span", "min.view", "max.view", "min.lsn", "num_records", "size_bytes"]
    rows, size = 0, 0
    for files, into in _together(added.filter(pc.invert(is_open)).select(columns).to_pylist(), now):
        rows, size = rows + _sum(files, "num_records"), size + _sum(files, "size_bytes")
        if joins and (rows > MOST_ROWS or size > MOST_BYTES):
            break
        joins.append(Join(tuple(file["path"] for file in files), into))
    return joins


def _together(files: Iterable[Mapping[str, Any]], now: float) -> Iterator[tuple[list[Mapping[str, Any]], int]]:
    """Two or more small files of one kind of row and of one settled period, the newest period first."""
    groups: dict[tuple[int, str], list[Mapping[str, Any]]] = defaultdict(list)
    for file in files:
        into = period(file["partition.span"], now)
        is_full = 2 * file["num_records"] >= MOST_ROWS or 2 * file["size_bytes"] >= MOST_BYTES
        if into is not None and not is_full and file["min.view"] == file["max.view"]:
            groups[into, file["min.view"]].append(file)
    for (into, _), small in sorted(groups.items(), key=lambda group: group[0], reverse=True):
        for some in _portions(sorted(small, key=lambda file: file["min.lsn"])):
            if len(some) > 1:
                yield some, into


def _portions(files: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Neighbours that make one file of at most MOST_ROWS and MOST_BYTES."""
    some: list[Mapping[str, Any]] = []
    rows, size = 0, 0
    for file in files:
        rows, size = rows + file["num_records"], size + file["size_bytes"]
        if some and (rows > MOST_ROWS or size > MOST_BYTES):
            yield some
            some, rows, size = [], file["num_records"], file["size_bytes"]
        some.append(file)
    if some:
        yield some


def _sum(files: Iterable[Mapping[str, Any]], column: str) -> int:
    return sum(file[column] for file in files)
