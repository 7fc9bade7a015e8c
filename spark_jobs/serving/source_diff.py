"""What readers would see otherwise: each view's answer from two sets of sources, up to the same lsn and moment.

sources, other sources, lsn -> the rows of each view that differ, counted by what became of them; the greatest changes
in words, all of them in a file.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, quote, quote_text
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Comparison, compare, counts_by_cause, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import servable
from spark_jobs.serving.version_diff import common_shape
from spark_jobs.storage import duckdb_reader

D = Dialect.DUCKDB
NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
SHOWN = 10
MOST_KEPT = 100_000
"""Rows of a view that its file has at most."""
Sides = tuple[str, str]
Attributed = Callable[[LocalAnswers, Served, Comparison], Comparison]
"""Old answers, view, rows that differ from the relation `built` -> the same rows with one more column, `cause`."""


@dataclass(frozen=True)
class ViewDifference:
    """Rows of a view that differ: only in the first answer (gone), only in the second (new), or with other values.

    greatest: those that change most, in words. file: where all of them are, or the first MOST_KEPT. causes: cause ->
    rows that differ by it, where somebody asked for causes.
    """

    view: str
    rows: int
    gone: int
    new: int
    other: int
    greatest: tuple[str, ...]
    file: str
    causes: Mapping[str | None, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "greatest": [*self.greatest]}


def between(
    views: Views,
    old: Mapping[str, Source],
    new: Mapping[str, Source],
    head: int,
    sides: Sides,
    folder: Path,
    attributed: Attributed | None = None,
) -> Iterator[ViewDifference]:
    """The views whose answers differ, up to `head`; a view that only one has is left out. `folder`: for the files.

    Two versions are compared in the columns that both serve. Raises ExplainError where these have no key.
    """
    now = datetime.now(UTC)
    before, after = LocalAnswers(views, old, head, now), LocalAnswers(views, new, head, now)
    there = {view.name: view for view in servable(views, old)}
    built = _built(views, old), _built(views, new)
    for view in servable(views, new):
        known = there.get(view.name)
        if known is None or _read_by(known, built[0]) == _read_by(view, built[1]):
            continue
        duckdb_reader.copy(after.con.sql(after.answer(view)), before.con, "built")
        shape = shape_of(view, served=True) if known is view else common_shape(known, view)
        compared = compare(before.con, before.answer(known), "FROM built", shape)
        if compared.differing:
            rows = attributed(before, view, compared) if attributed else compared
            yield _difference(view, rows, sides, folder, counts_by_cause(rows) if attributed else {})
        duckdb_reader.drop(before.con, "built", "left_rows", "right_rows", compared.name)


Built = tuple[str, list[tuple[str, int]]]
"""Which view, in which version, and its built tables, each with its version."""


def _built(views: Views, sources: Mapping[str, Source]) -> dict[str, Built]:
    return {view.name: (view.id, sources[view.id].tables(view)) for view in views if view.id in sources}


def _read_by(view: Served, built: Mapping[str, Built]) -> list[Built]:
    """What an answer is made of. Where it is the same, so is the answer, as a build writes what records change."""
    while isinstance(view, ChainedView):
        view = view.base
    return [built[name] for name in (view.name, *sorted(view.looked_up))]


def _difference(
    view: Served, compared: Comparison, sides: Sides, folder: Path, causes: Mapping[str | None, int]
) -> ViewDifference:
    con = compared.con
    counts = "count_if(NOT in_right), count_if(NOT in_left), count_if(in_left AND in_right)"
    [(gone, new, other)] = con.execute(f"SELECT {counts} FROM {compared.name}").fetchall()
    file = folder / f"{view.name}.csv"
    folder.mkdir(parents=True, exist_ok=True)
    rows = f"SELECT * EXCLUDE (n) FROM {compared.name} ORDER BY ALL LIMIT {MOST_KEPT:d}"
    con.execute(f"COPY ({rows}) TO {quote_text(str(file), D)} (HEADER)")
    greatest = compared.first(sides, SHOWN, order=_change(compared))
    return ViewDifference(view.name, compared.rows, gone, new, other, tuple(greatest), file.name, causes)


def _change(compared: Comparison) -> str | None:
    """SQL: by how much a row's numbers change, the most first; None where it has none."""
    kinds = {row[0]: str(row[1]) for row in compared.con.execute(f"DESCRIBE {compared.name}").fetchall()}
    numbers = [name for name in compared.shape.values if kinds[f"l_{name}"].partition("(")[0] in NUMBERS]
    terms = [
        f"abs(coalesce(CAST({quote(f'r_{n}', D)} AS DOUBLE), 0) - coalesce(CAST({quote(f'l_{n}', D)} AS DOUBLE), 0))"
        for n in numbers
    ]
    return f"{' + '.join(terms)} DESC" if terms else None
