"""Where a served row comes from: its batch part, its speed part, and the raw records behind both.

view, key -> sources in force -> answer, stored row, speed rows by lsn -> facts (to the cut), log (past it) -> records.
Reads the tables' files by DuckDB, so that it answers in seconds without a JVM.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.definitions.windows import END, START
from spark_jobs.engine import chained_view
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.expressions.kinds import Kind, duckdb_of
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.serving.lineage import Event, origins, raw
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.servable import ready
from spark_jobs.storage import coverage
from spark_jobs.storage.duckdb_reader import literal

D = Dialect.DUCKDB
NEAR = 5
Row = dict[str, Any]


class ExplainError(Exception):
    """There is nothing to explain: an unknown view or key. The text names near ones."""


@dataclass(frozen=True)
class Below:
    """Rows of another view."""

    view: str
    keys: tuple[str, ...]
    rows: list[Row]


@dataclass(frozen=True)
class Explanation:
    """`batch`: the stored row (a sequence: results and rows); `speed`: partials past the cut, each with its lsn.

    below: the rows of the view below that count, for a chained view; then nothing is stored and no records are listed.
    """

    view: str
    key: Row
    publication: int | None
    source: Source
    head: int
    answer: list[Row]
    batch: dict[str, list[Row]]
    speed: list[Row]
    lookups: list[Row]
    events: list[Event]
    event_count: int
    below: Below | None


def explain(store: Store, views: Views, name: str, given: Sequence[str], limit: int = 20) -> Explanation:
    """Explain the rows of view `name` with the keys `given` as `column=value`. Raises ExplainError."""
    current = store.current_publication()
    every = with_unbuilt(views.by_id, store.sources(current))
    view, sources = _served(find(views, name), name, views, ready(views, every, store.promoted()), every)
    key = _key(view, given)
    now = datetime.now(UTC)
    least = min(source.cut for source in sources.values())
    merged = LocalAnswers(views, sources, max(coverage.covered(least), default=least), now)
    stored = merged.stored_of(view)
    where = matching(key, view.served_keys)
    answer = _rows(merged, f"SELECT * FROM ({merged.answer(view)}) WHERE {where}")
    rows, speed, places = "false", [], []
    if not isinstance(view, ChainedView):
        rows = _stored(view, key, now)
        speed = _rows(merged, f"SELECT * FROM ({merged.speed(view)}) WHERE {rows} ORDER BY lsn")
        places = origins(merged, view, rows, sorted({row["lsn"] for row in speed}))
    if not answer and not speed:
        raise ExplainError(_nobody(merged, view, key))
    return Explanation(
        view=view.id,
        key=key,
        publication=current.id if current else None,
        source=sources[stored.id],
        head=merged.head,
        answer=answer,
        batch={} if isinstance(view, ChainedView) else _batch(merged, view, rows),
        speed=speed,
        lookups=_lookups(view, answer),
        events=raw(merged, places[:limit]),
        event_count=len(places),
        below=_below(merged, view, key) if isinstance(view, ChainedView) else None,
    )


def _served(
    view: Served, name: str, views: Views, chosen: Mapping[str, Source], every: Mapping[str, Source]
) -> tuple[Served, Mapping[str, Source]]:
    """The version that a name is served from, or that an id names; and one source per view."""
    versions = [version for version in views if version.name == view.name]
    if name.removeprefix("serving.") == view.name:
        return next((version for version in versions if version.id in chosen), view), chosen
    others = {version.id for version in versions}
    return view, {k: v for k, v in chosen.items() if k not in others} | {view.id: every[view.id]}


def find(views: Views, name: str) -> Served:
    """The view of that name or id. Raises ExplainError, which names near ones."""
    name = name.removeprefix("serving.")
    if view := views.served.get(name) or views.by_id.get(name):
        return view
    near = difflib.get_close_matches(name, [*views.served, *views.by_id], NEAR, 0.4)
    raise ExplainError(f"there is no view {name}" + _perhaps(dict.fromkeys(near)) + "; `tidemark views` lists them")


def _perhaps(near: Mapping[str, None]) -> str:
    return f"; near: {', '.join(near)}" if near else ""


def _key(view: Served, given: Sequence[str]) -> Row:
    """Column -> value. Some of the keys are enough; then several rows are explained."""
    names = list(view.served_keys)
    if not given:
        raise ExplainError(f"say which row of {view.name}: {' '.join(f'{name}=...' for name in names)}")
    key = {}
    for condition in given:
        name, equals, text = condition.partition("=")
        if not equals or name not in names:
            raise ExplainError(f"{condition}: the keys of {view.name} are {', '.join(names)}; write {names[0]}=value")
        key[name] = value_of(text, view.served_keys[name], condition)
    return key


def value_of(text: str, kind: Kind, given: str) -> Any:
    """A key's value from the command line; `null` is NULL. Raises ExplainError."""
    try:
        match kind:
            case _ if text.lower() == "null":
                return None
            case "BIGINT":
                return int(text)
            case "DOUBLE":
                return float(text)
            case "BOOLEAN":
                return {"true": True, "false": False}[text.lower()]
            case "DATE":
                return date.fromisoformat(text)
            case "TIMESTAMP":
                at = datetime.fromisoformat(text)
                return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, KeyError) as error:
        raise ExplainError(f"{given}: {text!r} is not a {kind}") from error
    return text


def matching(key: Row, kinds: Mapping[str, Kind]) -> str:
    """SQL that is true for rows with this key."""
    tests = [f"{quote(name, D)} IS NOT DISTINCT FROM {_literal(value, kinds[name])}" for name, value in key.items()]
    return " AND ".join(tests) or "true"


def _stored(view: View, key: Row, now: datetime) -> str:
    """SQL that is true for the stored rows behind the answer with this key."""
    if not isinstance(view, AggregateView):
        return matching({"key": key.get(view.key)}, {"key": view.served_keys[view.key]})
    stored = matching({name: value for name, value in key.items() if name in view.keys}, view.served_keys)
    if view.window is None:
        return stored
    return f"{stored} AND {view.window.panes(D, key.get(START), key.get(END), now)}"


def _literal(value: Any, kind: Kind) -> str:
    return f"CAST({'NULL' if value is None else literal(str(value))} AS {duckdb_of(kind)})"


def _rows(merged: LocalAnswers, sql: str) -> list[Row]:
    cursor = merged.con.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _batch(merged: LocalAnswers, view: View, stored: str) -> dict[str, list[Row]]:
    tables = merged.built(view)
    names = ("row",) if len(view.tables) == 1 else ("rows", "results")
    return {
        what: _rows(merged, f"SELECT * FROM {table} WHERE {stored}") for what, table in zip(names, tables, strict=False)
    }


def _below(merged: LocalAnswers, view: ChainedView, key: Row) -> Below:
    """The rows of the base that count for the key."""
    base = merged.base_of(view)
    counted = chained_view.contributing_rows(view, base, D, merged.answer(base), merged.now)
    where = matching({f"k__{name}": value for name, value in key.items()},
                     {f"k__{name}": kind for name, kind in view.served_keys.items()})  # fmt: skip
    columns = listed(base.answer_kinds, D)
    return Below(base.name, tuple(base.served_keys), _rows(merged, f"SELECT {columns} FROM ({counted}) WHERE {where}"))


def _lookups(view: Served, answer: list[Row]) -> list[Row]:
    return [
        {"column": column, "from": lookup.view, "key": row[lookup.key], "value": row[column]}
        for column, lookup in view.lookups.items()
        for row in answer
    ]


def _nobody(merged: LocalAnswers, view: Served, key: Row) -> str:
    """Raise ExplainError: no such row. It names near keys, one column at a time."""
    said = f"{view.name} has no row with {', '.join(f'{name}={value}' for name, value in key.items())}"
    others = []
    for name, value in key.items():
        text = f"CAST({quote(name, D)} AS VARCHAR)"
        near = f"levenshtein({text}, {literal(str(value))})"
        if view.served_keys[name] in ("BIGINT", "DOUBLE") and value is not None:
            near = f"abs({quote(name, D)} - {value})"
        near_keys = f"SELECT DISTINCT {text} AS k, {near} AS d FROM ({merged.answer(view)}) ORDER BY d NULLS LAST, k"
        keys = [str(row["k"]) for row in _rows(merged, f"{near_keys} LIMIT {NEAR}")]
        others.append(f"{name}: {', '.join(keys)}" if keys else f"{name}: the view has no rows yet")
    return f"{said}; near: {'; '.join(others)}"
