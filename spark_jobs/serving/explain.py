"""Where a served row comes from: its batch part, its speed part, and the raw records behind both.

view, key -> sources in force -> answer, stored row, speed rows by lsn -> facts (to the cut), log (past it) -> records.
Reads the tables' files by DuckDB, so that it answers in seconds without a JVM.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.definitions.windows import END, START
from spark_jobs.engine import chained_view, serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, listed, quote, quote_text
from spark_jobs.expressions.kinds import DUCKDB_TYPES, Kind
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import rows_of
from spark_jobs.serving.lineage import origins, raw
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready
from spark_jobs.storage import coverage

D = Dialect.DUCKDB
NEAR = 5
Row = dict[str, Any]


class ExplainError(Exception):
    """There is nothing to explain: an unknown view or key. The text names near ones."""


@dataclass(frozen=True)
class Explanation:
    """`batch`: the stored row (a sequence: results and rows); `speed`: partials past the cut, each with its lsn.

    events: the first records behind the answer, of `event_count`, as `lineage.raw` gives them. below: the view below a
    chained one, and those of its rows that count; then nothing is stored and no records are listed.
    """

    view: str
    key: Row
    publication: int | None
    source: Source
    head: int
    answer: list[Row]
    lookups: list[Row]
    batch: Mapping[str, list[Row]] = field(default_factory=dict)
    speed: Sequence[Row] = ()
    events: Sequence[Row] = ()
    event_count: int = 0
    below: tuple[Served, list[Row]] | None = None


def explain(store: Store, views: Views, name: str, given: Sequence[str], limit: int = 20) -> Explanation:
    """Explain the rows of view `name` with the keys `given` as `column=value`. Raises ExplainError."""
    current = store.current_publication()
    every = with_unbuilt(views.by_id, store.sources(current))
    view, sources = _served(find(views, name), name, views, ready(views, every, store.promoted()), every)
    key = _key(view, given)
    now, least = datetime.now(UTC), min(source.cut for source in sources.values())
    merged = LocalAnswers(views, sources, max(coverage.head()[0], least), now)
    answer = rows_of(merged.con, f"SELECT * FROM ({merged.answer(view)}) WHERE {matching(key, view.served_keys)}")
    behind = _below(merged, view, key) if isinstance(view, ChainedView) else _stored(merged, view, key, now, limit)
    if not answer and not behind.get("speed"):
        raise ExplainError(_nobody(merged, view, key))
    return Explanation(
        view=view.id,
        key=key,
        publication=current.id if current else None,
        source=sources[serving_plan.stored_of(view, merged).id],
        head=merged.head,
        answer=answer,
        lookups=_lookups(view, answer),
        **behind,
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
    perhaps = f"; near: {', '.join(dict.fromkeys(near))}" if near else ""
    raise ExplainError(f"there is no view {name}{perhaps}; `tidemark views` lists them")


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


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


PARSERS: Mapping[Kind, Callable[[str], Any]] = {
    "BIGINT": int,
    "DOUBLE": float,
    "BOOLEAN": lambda text: {"true": True, "false": False}[text.lower()],
    "DATE": date.fromisoformat,
    "TIMESTAMP": _instant,
}


def value_of(text: str, kind: Kind, given: str) -> Any:
    """A key's value from the command line; `null` is NULL. Raises ExplainError."""
    if text.lower() == "null":
        return None
    try:
        return PARSERS.get(kind, str)(text)
    except (ValueError, KeyError) as error:
        raise ExplainError(f"{given}: {text!r} is not a {kind}") from error


def matching(key: Row, kinds: Mapping[str, Kind]) -> str:
    """SQL that is true for rows with this key."""
    tests = [f"{quote(name, D)} IS NOT DISTINCT FROM {_literal(value, kinds[name])}" for name, value in key.items()]
    return " AND ".join(tests) or "true"


def _stored(merged: LocalAnswers, view: View, key: Row, now: datetime, limit: int) -> dict[str, Any]:
    """What is stored behind the answer with this key, and the first records that it is made of."""
    where = _is_stored(view, key, now)
    speed = rows_of(merged.con, f"SELECT * FROM ({merged.speed(view)}) WHERE {where} ORDER BY lsn")
    names = ("row",) if len(view.tables) == 1 else ("rows", "results")
    built = {
        name: rows_of(merged.con, f"SELECT * FROM {table} WHERE {where}")
        for name, table in zip(names, merged.built(view), strict=False)
    }
    places = origins(merged, view, where, sorted({row["lsn"] for row in speed}))
    return {"batch": built, "speed": speed, "events": raw(places[:limit]), "event_count": len(places)}


def _is_stored(view: View, key: Row, now: datetime) -> str:
    """SQL that is true for the stored rows behind the answer with this key."""
    if not isinstance(view, AggregateView):
        return matching({"key": key.get(view.key)}, {"key": view.served_keys[view.key]})
    stored = matching({name: value for name, value in key.items() if name in view.keys}, view.served_keys)
    if view.window is None:
        return stored
    return f"{stored} AND {view.window.panes(D, key.get(START), key.get(END), now)}"


def _literal(value: Any, kind: Kind) -> str:
    return f"CAST({'NULL' if value is None else quote_text(str(value), D)} AS {DUCKDB_TYPES[kind]})"


def _below(merged: LocalAnswers, view: ChainedView, key: Row) -> dict[str, Any]:
    """The base, and its rows that count for the key."""
    base = serving_plan.base_of(view, merged)
    counted = chained_view.contributing_rows(view, base, D, merged.answer(base), merged.now)
    where = matching({f"k__{name}": value for name, value in key.items()},
                     {f"k__{name}": kind for name, kind in view.served_keys.items()})  # fmt: skip
    columns = listed(base.answer_kinds, D)
    return {"below": (base, rows_of(merged.con, f"SELECT {columns} FROM ({counted}) WHERE {where}"))}


def _lookups(view: Served, answer: list[Row]) -> list[Row]:
    return [
        {"column": column, "from": lookup.view, "key": row[lookup.key], "value": row[column]}
        for column, lookup in view.lookups.items()
        for row in answer
    ]


def _nobody(merged: LocalAnswers, view: Served, key: Row) -> str:
    """Why there is nothing to explain: no such row. It names near keys, one column at a time."""
    said = f"{view.name} has no row with {', '.join(f'{name}={value}' for name, value in key.items())}"
    others = []
    for name, value in key.items():
        text = f"CAST({quote(name, D)} AS VARCHAR)"
        near = f"levenshtein({text}, {quote_text(str(value), D)})"
        if view.served_keys[name] in ("BIGINT", "DOUBLE") and value is not None:
            near = f"abs({quote(name, D)} - {value})"
        near_keys = f"SELECT DISTINCT {text} AS k, {near} AS d FROM ({merged.answer(view)}) ORDER BY d NULLS LAST, k"
        keys = [str(row["k"]) for row in rows_of(merged.con, f"{near_keys} LIMIT {NEAR}")]
        others.append(f"{name}: {', '.join(keys)}" if keys else f"{name}: the view has no rows yet")
    return f"{said}; near: {'; '.join(others)}"
