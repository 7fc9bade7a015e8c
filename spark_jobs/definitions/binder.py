"""A view's declaration joined to the event types it reads: the object that the rest of Tidemark works with.

Declaration + event columns -> AggregateView | SequenceView, or ViewError (reason, hint).
Everything here is checked once, when views are loaded; the SQL modules may rely on it.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from spark_jobs.definitions.bound_view import FOREVER, RANK, AggregateView, BoundRow, SequenceView
from spark_jobs.definitions.clauses import (
    ViewError,
    check_columns,
    check_name,
    condition_of,
    element_of,
    fields_of,
    key_of,
    microseconds,
)
from spark_jobs.definitions.event_columns import ENVELOPE, EventTypes
from spark_jobs.definitions.measures.base import BoundMeasure, Measure
from spark_jobs.definitions.measures.exact import Last, MinBy
from spark_jobs.definitions.spec import Aggregate, Row, Sequence, Top, Window
from spark_jobs.definitions.windows import END, PANE, START, BoundWindow
from spark_jobs.expressions.error import ExpressionError, Refused
from spark_jobs.expressions.expression import Expression, parse
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.literals import micros
from spark_jobs.expressions.query.parse import Query, parse_query
from spark_jobs.expressions.query.typed import Relation

EVERY = "*"


def bind_aggregate(name: str, declared: Aggregate, event_types: EventTypes) -> AggregateView:
    """Parse every expression of an Aggregate against its event types. Raises: ViewError, ExpressionError."""
    types = _types(declared, event_types)
    fields = dict(ENVELOPE) if declared.of == EVERY else fields_of(types, event_types)
    for column in (*declared.by, *declared.measures, *declared.each, *declared.derived, *declared.lookups):
        check_name(column)
    if not declared.by or not declared.measures:
        hint = "fill `by` and `measures`; one row in all: by a constant"
        raise ViewError("an Aggregate needs keys and measures", hint)
    _refuse_clashes(declared)
    each = {column: element_of(text, fields, f"each {column}") for column, text in declared.each.items()}
    fields = {**fields, **dict.fromkeys(each, "STRING")}
    measures = tuple(_measure(column, measure, fields) for column, measure in declared.measures.items())
    is_changelog = all(event_types[event_type].compacted for event_type in types)
    window = _window(declared.window, is_changelog) if declared.window else None
    pane = {PANE: f"window_start('{declared.window.every}', occurred_at)"} if declared.window else {}
    keys = {key: key_of(text, fields, f"key {key}") for key, text in {**declared.by, **pane}.items()}
    # An unfiltered `Last` over changelogs makes a table of current rows, and a tombstone ends a row.
    is_upsert = is_changelog and any(m.measure.order == "last" and not m.measure.where for m in measures)
    view = AggregateView(
        name=name,
        version=declared.version,
        declaration=declared,
        event_columns={event_type: event_types[event_type] for event_type in types},
        keys=keys,
        window=window,
        where=condition_of(declared.where, fields, "where"),
        each=each,
        measures=measures,
        derived={},
        having=None,
        tombstone=_measure("event__deleted", Last("deleted"), fields) if is_upsert else None,
    )
    answer = {**view.served_keys, **{measure.name: measure.answer_kind for measure in measures}}
    derived = {column: parse(text, answer, f"derived {column}") for column, text in declared.derived.items()}
    answer |= {column: expression.kind for column, expression in derived.items()}
    view = replace(view, derived=derived, having=_having(declared, answer))
    if declared.top:
        _check_top(view, declared.top)
    return view


def _having(declared: Aggregate, answer: Mapping[str, Kind]) -> Expression | None:
    try:
        return condition_of(declared.having, answer, "having")
    except ExpressionError as error:
        if used := [name for name in declared.lookups if re.search(rf"\b{name}\b", error.text)]:
            reason = f"{', '.join(used)} is looked up when the question is asked, after `having`"
            raise ExpressionError(error.text, "having", reason, "filter by it in the question") from None
        raise


def _types(declared: Aggregate, event_types: EventTypes) -> tuple[str, ...]:
    if not declared.of:
        raise ViewError("an Aggregate of nothing", "name an event type in `of`, or a view in `of_view`")
    if declared.of == EVERY:
        return tuple(sorted(name for name, shape in event_types.items() if not shape.is_outcome))
    return (declared.of,) if isinstance(declared.of, str) else declared.of


def _measure(name: str, measure: Measure, fields: Mapping[str, Kind]) -> BoundMeasure:
    where = f"measure {name}"
    value = parse(measure.of, fields, where) if measure.of is not None else None
    by = _by(measure.by, fields, f"{where}, by") if isinstance(measure, MinBy) and measure.by is not None else None
    bound = BoundMeasure(name, measure, value, condition_of(measure.where, fields, where), by)
    try:
        _ = bound.state
    except Refused as error:
        raise ViewError(f"measure {name}: {error.reason}", error.hint) from None
    return bound


def _by(text: str, fields: Mapping[str, Kind], where: str) -> Expression:
    by = parse(text, fields, where)
    if by.kind.startswith("ARRAY"):
        raise ExpressionError(text, where, f"values are not ordered by {by.kind}", "by a number, a text or a time")
    return by


def bind_sequence(name: str, declared: Sequence, event_types: EventTypes) -> SequenceView:
    """Parse every expression of a Sequence, and its query. Raises: ViewError, ExpressionError."""
    if not declared.rows:
        raise ViewError("a Sequence needs rows", "give at least one kind of row")
    for column in (declared.key, *declared.rows):
        check_name(column)
    check_columns("the result", declared.results)
    rows = tuple(_row(kind, row, event_types, declared) for kind, row in declared.rows.items())
    if len({row.key.kind for row in rows}) > 1:
        raise ViewError("rows have keys of different kinds", "CAST the keys to one kind, BIGINT or STRING")
    columns: dict[str, Kind] = {}
    for column, expression in ((c, e) for row in rows for c, e in row.columns.items()):
        if columns.setdefault(column, expression.kind) != expression.kind:
            raise ViewError(f"column {column} has different kinds in different rows", "CAST it, or use another name")
    served, key = declared.results if declared.resolve else columns, {declared.key: rows[0].key.kind}
    if declared.key in served:
        raise ViewError(f"two columns are named {declared.key}", "rename one of them")
    hide = condition_of(declared.hide, {**served, **key}, "hide")
    alert = condition_of(declared.alert.where, {**columns, **key}, "alert") if declared.alert else None
    types = [name for row in declared.rows.values() for name in (row.of, row.side_input) if name]
    known = {event_type: event_types[event_type] for event_type in types}
    view = SequenceView(name, declared.version, declared, known, rows, None, hide, alert)
    return replace(view, resolve=_query(view, declared.resolve)) if declared.resolve else view


def _query(view: SequenceView, text: str) -> Query:
    """The compiled `resolve`. Rows differ by their place in the log, and by kind where one event makes several."""
    types = [row.declaration.of for row in view.rows]
    unique = frozenset({"tie"} if len(set(types)) == len(types) else {"tie", "kind"})
    reaches = {f"{row.kind}_reach": row.reach for row in view.rows if row.reach is not None}
    query = parse_query(text, Relation(view.row_kinds, unique), {"forever": FOREVER, **reaches}, "resolve")
    wanted, given = view.result_kinds, query.columns
    if given.keys() != wanted.keys():
        lacking, extra = sorted(wanted.keys() - given.keys()), sorted(given.keys() - wanted.keys())
        raise ViewError(f"resolve lacks {lacking} and gives {extra}", "select key, opened_at, closes_at and `results`")
    for name, kind in wanted.items():
        if given[name] != kind:
            is_instant = given[name] == "TIMESTAMP"
            hint = "unix_micros(..) of an instant" if is_instant else "declare its kind, or CAST it in resolve"
            raise ViewError(f"result {name} is {given[name]}, not {kind}", hint)
    return query


def _row(kind: str, row: Row, event_types: EventTypes, declared: Sequence) -> BoundRow:
    fields, where = fields_of((row.of,), event_types), f"row {kind}"
    known = fields_of((row.side_input,), event_types) if row.side_input else {}
    side_columns = {name: kind for name, kind in known.items() if name not in ENVELOPE}
    if clash := sorted(fields.keys() & side_columns.keys()):
        raise ViewError(f"row {kind}: both {row.of} and {row.side_input} have {', '.join(clash)}", "rename one of them")
    fields |= side_columns
    check_columns(f"row {kind}", row.columns)
    if row.reach is None and not row.carried and declared.resolve is None:
        hint = "give it a reach, or let `resolve` yield a result that does not close before the row is consumed"
        raise ViewError(f"row {kind} has no bound on its reach and no result that could cover it", hint)
    key, ts = parse(row.key, fields, f"{where}, key"), parse(row.ts, fields, f"{where}, ts")
    if key.kind not in ("BIGINT", "STRING"):
        raise ViewError(f"row {kind} has a key of kind {key.kind}", "CAST the key to BIGINT or STRING")
    if ts.kind != "TIMESTAMP":
        raise ViewError(f"row {kind} has a ts of kind {ts.kind}", "use a TIMESTAMP, such as occurred_at")
    columns = {column: parse(text, fields, f"{where}, column {column}") for column, text in row.columns.items()}
    condition = condition_of(row.where, fields, f"{where}, where")
    reach = microseconds(row.reach, f"row {kind} has the reach") if row.reach is not None else None
    return BoundRow(kind, row, event_types[row.of], side_columns, key, ts, condition, columns, reach)


_MOST_PANES = 1_440


def _window(declared: Window, is_changelog: bool) -> BoundWindow:
    if is_changelog:
        raise ViewError("a window over a changelog", "window over events; a changelog says what holds now")
    size = microseconds(declared.size, "the window has the size")
    every = microseconds(declared.every, "the window has panes of")
    if not every or micros("day") % every or size % every or not size // every:
        hint = "its size is a multiple of `every`, and a day is one as well: size='10 minutes', every='1 minute'"
        raise ViewError(f"a window of {declared.size} every {declared.every}", hint)
    if size // every > _MOST_PANES:
        raise ViewError(f"a window of {size // every:,} panes", f"at most {_MOST_PANES:,}: choose a longer `every`")
    return BoundWindow(declared, size, every)


def _refuse_clashes(declared: Aggregate) -> None:
    seen = {PANE, START, END} if declared.window else set()
    seen |= {RANK} if declared.top else set()
    for column in (*declared.by, *declared.measures, *declared.derived, *declared.lookups):
        if column in seen:
            raise ViewError(f"two columns are named {column}", "rename one of them")
        seen.add(column)


def _check_top(view: AggregateView, top: Top) -> None:
    if top.k < 1:
        raise ViewError(f"the top {top.k} rows", "serve at least one row: Top(k=10, ...)")
    if top.by not in {*(measure.name for measure in view.measures), *view.derived}:
        raise ViewError(f"rows are ranked by {top.by}", "name one of the measures or derived columns")
    if unknown := [name for name in top.per if name not in view.served_keys]:
        raise ViewError(f"there are ranks per {', '.join(unknown)}", f"the keys are {', '.join(view.served_keys)}")
