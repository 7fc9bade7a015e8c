"""What can only be checked of a view that has been bound: its SQL runs in DuckDB, its `resolve` keeps to the rules.

view -> nothing, or ViewError. No rows are read: DuckDB binds each query over empty tables.
"""

import re
from collections.abc import Mapping
from functools import cache

import duckdb
import sqlglot
from sqlglot import exp

from spark_jobs.definitions.binder import ViewError
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.definitions.event_columns import ENVELOPE, EventTypes
from spark_jobs.definitions.spec import SOURCE_LSN
from spark_jobs.engine import chained_view, partials, sequences
from spark_jobs.engine.chained_view import ChainedView
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, type_of
from spark_jobs.expressions.kinds import Kind

D = Dialect.DUCKDB
# Not functions of the rows alone, so that batch and speed would differ.
_UNSTABLE = {"rand", "randn", "random", "uuid", "now", "current_timestamp", "current_date", "any_value"}
_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"}


def check_alert(view: SequenceView, shapes: EventTypes) -> None:
    """What the view alerts of has the fields of the event. Raises ViewError."""
    alert = view.declaration.alert
    if alert is None:
        return
    if view.declaration.resolve is not None:
        raise ViewError("an alert of results that others may change", "alert where each row is its own result")
    if alert.of not in shapes:
        raise ViewError(f"unknown event type {alert.of}", f"known are {', '.join(sorted(shapes))}")
    columns = {**view.columns, view.key: view.rows[0].key.kind, SOURCE_LSN: "BIGINT"}
    fields = shapes[alert.of].fields
    wrong = [name for name, kind in fields.items() if columns.get(name) != kind]
    wrong += [name for name in alert.same if name not in columns]
    if wrong or SOURCE_LSN not in fields:
        lacking = ", ".join(wrong) or SOURCE_LSN
        raise ViewError(f"an alert {alert.of} with {lacking}", f"give the row such a column; {SOURCE_LSN} is a field")


def check_bound(view: View) -> None:
    """Bind every query of the view in DuckDB over empty tables. Raises ViewError."""
    if outcomes := [name for name in view.side_inputs if view.event_columns[name].is_outcome]:
        raise ViewError(
            f"rows have the side input {', '.join(outcomes)}",
            "a side input comes through a topic; record outcomes do not",
        )
    connection = _connection()
    for event_type in view.event_types:
        connection.execute(f"CREATE OR REPLACE TABLE facts_{event_type} ({_fact_columns(view, event_type)})")
    facts_of = {event_type: f"facts_{event_type}" for event_type in view.event_types}
    try:
        connection.execute(f"CREATE OR REPLACE VIEW r AS {partials.of_facts(view, D, facts_of)}")
        connection.sql("FROM r").fetchall()
        if rejects := partials.rejects(view, D, facts_of):
            connection.sql(rejects).fetchall()
        if isinstance(view, SequenceView):
            _check_sequence(connection, view)
    except duckdb.Error as error:
        raise ViewError(f"DuckDB cannot run it: {error}", "see docs/expressions.md") from error


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One for all views: to open one takes longer than to check a view."""
    return duckdb_session.connect()


def _fact_columns(view: View, event_type: str) -> str:
    coordinates = 'lsn BIGINT, "partition" INTEGER, "offset" BIGINT'
    kinds: dict[str, Kind] = {**ENVELOPE, **view.event_columns[event_type].fields}
    return ", ".join([coordinates, *(f'"{name}" {type_of(kind, D)}' for name, kind in kinds.items())])


def _check_sequence(connection: duckdb.DuckDBPyConnection, view: SequenceView) -> None:
    if view.declaration.resolve is not None:
        _check_resolve(view, view.declaration.resolve)
    _check_results(connection, view)
    connection.execute(f"CREATE OR REPLACE VIEW res AS {sequences.resolve(view, D, 'r')}")
    connection.sql(sequences.final(view, D, "res")).fetchall()


def _check_resolve(view: SequenceView, resolve: str) -> None:
    known = {"rows", "forever", *(f"{row.kind}_reach" for row in view.rows if row.reach is not None)}
    unknown = set(re.findall(r"\{(.*?)\}", resolve)) - known
    if unknown or "{rows}" not in resolve:
        raise ViewError(
            f"resolve knows no {sorted(unknown)}" if unknown else "resolve does not read {rows}",
            f"the placeholders are {', '.join(sorted(known))}",
        )
    text = re.sub(r"\{rows\}", "rows_of_the_view", resolve)
    text = re.sub(r"\{\w+\}", "0", text)
    try:
        statements = sqlglot.parse(text, read="spark")
    except sqlglot.ParseError as error:
        raise ViewError(f"resolve does not parse: {error}", "write one SELECT") from error
    tree = statements[0]
    if len(statements) != 1 or not isinstance(tree, exp.Query):
        raise ViewError("resolve is not one SELECT", "write one SELECT, with WITH where it helps")
    _check_tree(tree)


def _check_tree(tree: exp.Query) -> None:
    own = {cte.alias for cte in tree.find_all(exp.CTE)} | {"rows_of_the_view"}
    for table in tree.find_all(exp.Table):
        if table.name not in own or table.db:
            raise ViewError(f"resolve reads {table.sql('spark')}", "it may read {rows} and its own WITH parts only")
    for function in tree.find_all(exp.Func):
        if function.sql_name().lower() in _UNSTABLE or function.name.lower() in _UNSTABLE:
            raise ViewError(f"resolve uses {function.sql('spark')}", "its results must follow from the rows alone")
    if tree.args.get("order") or tree.args.get("limit"):
        raise ViewError("resolve orders or limits its results", "order inside windows only")


def _check_results(connection: duckdb.DuckDBPyConnection, view: SequenceView) -> None:
    found = connection.sql(f"DESCRIBE {sequences.author_query(view, D, 'r')}").fetchall()
    kinds = {str(name): str(kind) for name, kind, *_ in found}
    wanted = view.result_kinds
    if kinds.keys() != wanted.keys():
        lacking, extra = sorted(wanted.keys() - kinds.keys()), sorted(kinds.keys() - wanted.keys())
        raise ViewError(f"resolve lacks {lacking} and gives {extra}", "select key, opened_at, closes_at and `results`")
    for name, kind in wanted.items():
        integers = kind == "BIGINT" and kinds[name] in _INTEGERS
        if kinds[name] != type_of(kind, D) and not integers:
            raise ViewError(f"result {name} is {kinds[name]}, not {kind}", "declare its kind, or CAST it in resolve")


def check_chained(view: ChainedView) -> None:
    """Bind the query of a chained view in DuckDB. Raises ViewError."""
    columns = ", ".join(
        f'CAST(NULL AS {type_of(kind, D)}) AS "{name}"' for name, kind in view.base.answer_kinds.items()
    )
    try:
        _connection().sql(chained_view.answered(view, D, f"SELECT {columns}")).fetchall()
    except duckdb.Error as error:
        raise ViewError(f"DuckDB cannot run it: {error}", "see docs/expressions.md") from error


def check_lookups(view: View, by_name: Mapping[str, View]) -> None:
    """A lookup finds a view with one key column of the same kind, and a measure in it. Raises ViewError."""
    if not isinstance(view, AggregateView):
        return
    for column, lookup in view.lookups.items():
        other = by_name.get(lookup.view)
        if not isinstance(other, AggregateView) or len(other.keys) != 1 or other.lookups or other.top:
            raise ViewError(
                f"lookup {column} reads {lookup.view}", "name an Aggregate with one key and neither lookups nor top"
            )
        if lookup.column not in {measure.name for measure in other.measures}:
            raise ViewError(f"{lookup.view} has no measure {lookup.column}", "name one of its measures")
        key = view.keys.get(lookup.key)
        if key is None or key.kind != next(iter(other.keys.values())).kind:
            raise ViewError(
                f"lookup {column} by {lookup.key}", "name a key of this view, of the kind of the other's key"
            )
