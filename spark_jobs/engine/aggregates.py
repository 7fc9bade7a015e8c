"""SQL of an Aggregate, for DuckDB and Spark alike.

facts --partials--> keys and partial columns --merged--> one row per key --final--> the answer (`answered` per stored
key, widened to windows, with derived columns, ranked, joined with lookups).
Facts that fail an expression are left out of the partials and listed by `partials.rejects`, from `faults`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from spark_jobs.definitions.bound_view import RANK, AggregateView
from spark_jobs.definitions.event_columns import ENVELOPE
from spark_jobs.definitions.measures.base import BoundMeasure
from spark_jobs.definitions.spec import Top
from spark_jobs.expressions.dialect import (
    Dialect,
    exploded,
    failing,
    filled,
    listed,
    micros,
    null_of,
    order_of_events,
    placed,
    quote,
    rendered,
)
from spark_jobs.expressions.expression import Expression

COORDINATES = ("lsn", "topic", "partition", "offset")
Fault = tuple[str, Expression | None, str | None, str]
"""The name of a condition, the condition, SQL of the part that fails where it is true (or None), relation of facts."""


def source(view: AggregateView, d: Dialect, facts_of: Mapping[str, str]) -> str:
    """SELECT of the facts of the event types in `facts_of` (event type -> relation), with the columns in use."""
    used = sorted(view.used_columns)
    return " UNION ALL ".join(
        f"SELECT {listed(COORDINATES, d)}, {_columns(view, event_type, used, d)} FROM {relation}"
        for event_type, relation in facts_of.items()
        if event_type in view.event_types
    )


def _columns(view: AggregateView, event_type: str, used: list[str], d: Dialect) -> str:
    """The columns in use; a field that this event type lacks is NULL."""
    there = {*ENVELOPE, *view.event_columns[event_type].fields}
    kinds = {name: kind for columns in view.event_columns.values() for name, kind in columns.fields.items()}
    return ", ".join(
        quote(name, d) if name in there else f"{null_of(kinds[name], d)} AS {quote(name, d)}" for name in used
    )


def counted(view: AggregateView, d: Dialect, facts: str) -> str:
    """SELECT of the facts (with `each`: of their elements) that fulfil the view's condition."""
    where = f" WHERE {rendered(view.where, d)}" if view.where else ""
    return f"SELECT * FROM ({_elements(view, d, facts)}){where}"


def partials(view: AggregateView, d: Dialect, facts: str, per: Iterable[str] = ()) -> str:
    """Keys and partial columns of `facts` (a SELECT made by `source`), grouped also by the columns `per`."""
    per = list(per)
    keys = listed([*per, *view.keys, *view.distinct_keys], d)
    made = ", ".join(f"{filled(part.make, d)} AS {quote(part.column, d)}" for part in view.state)
    return f"SELECT {', '.join(filter(None, [keys, made]))} FROM ({_measured(view, d, facts, per)}) GROUP BY {keys}"


def _measured(view: AggregateView, d: Dialect, facts: str, per: list[str]) -> str:
    """One row per fact that counts: keys, measured values (i__), filters (w__) and the order of events."""
    columns = [quote(name, d) for name in per]
    columns += [f"{rendered(key, d)} AS {quote(name, d)}" for name, key in view.keys.items()]
    for measure in view.stored:
        columns += _inputs(measure, d)
    if any(measure.measure.order for measure in view.stored):
        at = "CAST(0 AS BIGINT)" if view.is_changelog else micros("occurred_at", d)
        columns.append(f"{order_of_events(at, d)} AS event__order")
    where = [f"({rendered(view.where, d)})"] if view.where else []
    where += [f"({failed}) IS NULL"] if (failed := failed_at(view, d)) else []
    clause = f" WHERE {' AND '.join(where)}" if where else ""
    return f"SELECT {', '.join(columns)} FROM ({_elements(view, d, facts)}){clause}"


def _inputs(measure: BoundMeasure, d: Dialect) -> list[str]:
    """The columns of the measured value, which may be a key of the partial, of the filter, and of `by`."""
    condition = rendered(measure.condition, d) if measure.condition else None
    value = rendered(measure.value, d) if measure.value else None
    if value and (limit := measure.limit):  # NULL beyond it, so that no engine overflows
        value = f"CASE WHEN ({value}) BETWEEN {-limit} AND {limit} THEN {value} END"
    if value and measure.measure.joins_key:
        value = filled(placed(measure.measure.keyed, x=f"({value})"), d)
        only = f"CASE WHEN {condition} THEN {value} END" if condition else value
        return [f"{only} AS {quote(f'{measure.name}__value', d)}"]
    columns = [f"({condition}) AS {measure.filter}"] if condition else []
    columns += [f"{rendered(measure.by, d)} AS {measure.ordered}"] if measure.by else []
    return [*columns, f"{value} AS {measure.input}"] if value else columns


def _elements(view: AggregateView, d: Dialect, facts: str) -> str:
    """Facts with `each`: a row per element."""
    for name, array in view.each.items():
        facts = f"SELECT *, {exploded(rendered(array, d), d)} AS {quote(name, d)} FROM ({facts})"
    return facts


def failed_at(view: AggregateView, d: Dialect) -> str | None:
    """SQL: the part of the view at which a fact's evaluation fails, or NULL; None where nothing can fail."""
    tests = [(f"key {name}", failing(key, d)) for name, key in view.keys.items()]
    for measure in view.measures:
        tests += [(f"measure {measure.name}", test) for test in _measure_fails(measure, d)]
    cases = [f"WHEN {test} THEN '{name}'" for name, test in tests if test]
    return f"CASE {' '.join(cases)} END" if cases else None


def _measure_fails(measure: BoundMeasure, d: Dialect) -> list[str]:
    """A value counts as failed only if it passes the measure's own filter."""
    tests = [failing(part, d) for part in measure.parts]
    if measure.value and (limit := measure.limit):
        tests.append(f"({rendered(measure.value, d)}) NOT BETWEEN {-limit} AND {limit}")
    if measure.condition:
        only = rendered(measure.condition, d)
        tests = [f"(({only}) AND ({test}))" for test in tests if test]
        tests.append(failing(measure.condition, d))
    return [test for test in tests if test]


def faults(view: AggregateView, facts: str) -> list[Fault]:
    """Where the view's condition and its parts may fail, over the relation of facts; for DuckDB."""
    return [("where", view.where, failed_at(view, Dialect.DUCKDB), f"({_elements(view, Dialect.DUCKDB, facts)})")]


def merged(view: AggregateView, d: Dialect, relation: str, by: Iterable[str] | None = None) -> str:
    """Partials of `relation`, one row per key (or per `by`, in the place of the view's keys); the same columns out."""
    keys = listed([*(view.keys if by is None else by), *view.distinct_keys], d)
    parts = [f"{filled(part.merge, d)} AS {quote(part.column, d)}" for part in view.state]
    return f"SELECT {', '.join([keys, *parts])} FROM {relation} GROUP BY {keys}"


def final(
    view: AggregateView, d: Dialect, relation: str, lookups: Mapping[str, str] = {}, now: datetime | None = None
) -> str:
    """The answer over merged partials.

    lookups: column -> relation of the looked-up view's answer. now: of a trailing window, or None: the engine's clock.
    """
    if view.window:
        windows = f"({view.window.rows(d, relation, now)})"
        relation = f"({merged(view, d, windows, view.served_keys)})"
    answer = _derived(view, d, answered(view, d, relation, view.served_keys))
    if view.top:
        answer = _ranked(view, view.top, d, answer)
    for name, lookup in view.lookups.items():
        answer = (
            f"SELECT a.*, b.{quote('found', d)} AS {quote(name, d)} FROM ({answer}) a LEFT JOIN "
            f"{lookups[name]} b ON a.{quote(lookup.key, d)} = b.{quote('looked_up', d)}"
        )
    return answer


def answered(view: AggregateView, d: Dialect, relation: str, by: Iterable[str] | None = None) -> str:
    """Keys (or `by`) and measures over merged partials; a changelog's deleted rows are left out."""
    keys = list(view.keys if by is None else by)
    alive = " WHERE NOT coalesce(event__deleted, false)" if view.tombstone else ""
    answers = ", ".join(f"{filled(m.measure.final(m.name, m.kind), d)} AS {quote(m.name, d)}" for m in view.measures)
    return f"SELECT {listed(keys, d)}, {answers} FROM {_counted(view, d, relation, keys)}{alive}"


def _derived(view: AggregateView, d: Dialect, answer: str) -> str:
    """The answer with its derived columns, without the rows that `having` leaves out."""
    if view.derived:
        made = ", ".join(f"{rendered(expression, d)} AS {quote(name, d)}" for name, expression in view.derived.items())
        answer = f"SELECT *, {made} FROM ({answer})"
    return f"SELECT * FROM ({answer}) WHERE {rendered(view.having, d)}" if view.having else answer


def _ranked(view: AggregateView, top: Top, d: Dialect, answer: str) -> str:
    """The first rows, with their rank; the keys make the order total where ties are cut."""
    order = f"ORDER BY {quote(top.by, d)} DESC NULLS LAST"
    if top.ties == "cut":
        order += "".join(f", {quote(key, d)} ASC NULLS FIRST" for key in view.served_keys)
    per = f"PARTITION BY {listed(top.per, d)} " if top.per else ""
    ranked = f"SELECT *, CAST(rank() OVER ({per}{order}) AS BIGINT) AS {RANK} FROM ({answer})"
    return f"SELECT * FROM ({ranked}) WHERE {RANK} <= {top.k:d}"


def _counted(view: AggregateView, d: Dialect, relation: str, by: Iterable[str]) -> str:
    """The answer's keys and measures: values that are keys of the partial are counted or ranked."""
    if not view.distinct_keys:
        return relation
    keys = listed(by, d)
    measures = view.distinct_keys.values()
    ranked = {column: sql for m in measures for column, sql in m.measure.ranked(m.name).items()}
    if ranked:
        beside = (f"{filled(placed(sql, by=keys), d)} AS {quote(column, d)}" for column, sql in ranked.items())
        relation = f"(SELECT *, {', '.join(beside)} FROM {relation})"
    parts = [f"{filled(part.merge, d)} AS {quote(part.column, d)}" for part in view.state]
    counts = [f"{filled(m.measure.collected(m.name), d)} AS {quote(m.name, d)}" for m in measures]
    return f"(SELECT {', '.join([keys, *parts, *counts])} FROM {relation} GROUP BY {keys})"
