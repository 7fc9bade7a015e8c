"""What can only be checked of a view that has been bound: its SQL runs in DuckDB, what it names beside itself is there.

view -> nothing, or ViewError. No rows are read: DuckDB binds each query over empty tables.
"""

from collections.abc import Mapping

import duckdb

from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.definitions.clauses import ViewError
from spark_jobs.definitions.event_columns import ENVELOPE, EventTypes
from spark_jobs.definitions.spec import SOURCE_LSN
from spark_jobs.engine import chained_view, partials, sequences
from spark_jobs.engine.chained_view import ChainedView
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, type_of
from spark_jobs.expressions.expression import empty_relation
from spark_jobs.expressions.kinds import Kind

D = Dialect.DUCKDB


def check_alert(view: SequenceView, event_types: EventTypes) -> None:
    """What the view alerts of has the fields of the event. Raises ViewError."""
    alert = view.declaration.alert
    if alert is None:
        return
    if view.declaration.resolve is not None:
        raise ViewError("an alert of results that others may change", "alert where each row is its own result")
    if alert.of not in event_types:
        raise ViewError(f"unknown event type {alert.of}", f"known are {', '.join(sorted(event_types))}")
    columns = {**view.columns, view.key: view.rows[0].key.kind, SOURCE_LSN: "BIGINT"}
    fields = event_types[alert.of].fields
    wrong = [name for name, kind in fields.items() if columns.get(name) != kind]
    wrong += [name for name in alert.same if name not in columns]
    if wrong or SOURCE_LSN not in fields:
        lacking = ", ".join(wrong) or SOURCE_LSN
        raise ViewError(f"an alert {alert.of} with {lacking}", f"give the row such a column; {SOURCE_LSN} is a field")


def check_bound(view: View) -> None:
    """Bind every query of the view in DuckDB over empty tables. Raises ViewError."""
    if outcomes := [name for name in view.side_inputs if view.event_columns[name].is_outcome]:
        hint = "a side input comes through a topic; record outcomes do not"
        raise ViewError(f"rows have the side input {', '.join(outcomes)}", hint)
    connection = duckdb_session.shared()
    for event_type in view.event_types:
        connection.execute(f"CREATE OR REPLACE TABLE facts_{event_type} ({_fact_columns(view, event_type)})")
    facts_of = {event_type: f"facts_{event_type}" for event_type in view.event_types}
    try:
        connection.execute(f"CREATE OR REPLACE VIEW r AS {partials.of_facts(view, facts_of)}")
        connection.sql("FROM r").fetchall()
        if rejects := partials.rejects(view, facts_of):
            connection.sql(rejects).fetchall()
        if isinstance(view, SequenceView):
            connection.execute(f"CREATE OR REPLACE VIEW res AS {sequences.resolve(view, D, 'r')}")
            connection.sql(sequences.final(view, D, "res")).fetchall()
    except duckdb.Error as error:
        raise ViewError(f"DuckDB cannot run it: {error}", "see docs/expressions.md") from error


def _fact_columns(view: View, event_type: str) -> str:
    coordinates = 'lsn BIGINT, "partition" INTEGER, "offset" BIGINT'
    kinds: dict[str, Kind] = {**ENVELOPE, **view.event_columns[event_type].fields}
    return ", ".join([coordinates, *(f'"{name}" {type_of(kind, D)}' for name, kind in kinds.items())])


def check_chained(view: ChainedView) -> None:
    """Bind the query of a chained view in DuckDB. Raises ViewError."""
    base = f"FROM {empty_relation(view.base.answer_kinds)}"
    try:
        duckdb_session.shared().sql(chained_view.answered(view, D, base)).fetchall()
    except duckdb.Error as error:
        raise ViewError(f"DuckDB cannot run it: {error}", "see docs/expressions.md") from error


def check_lookups(view: View, by_name: Mapping[str, View]) -> None:
    """A lookup finds a view with one key column of the same kind, and a measure in it. Raises ViewError."""
    if not isinstance(view, AggregateView):
        return
    for column, lookup in view.lookups.items():
        other = by_name.get(lookup.view)
        if not isinstance(other, AggregateView) or len(other.keys) != 1 or other.lookups or other.top:
            hint = "name an Aggregate with one key and neither lookups nor top"
            raise ViewError(f"lookup {column} reads {lookup.view}", hint)
        if lookup.column not in {measure.name for measure in other.measures}:
            raise ViewError(f"{lookup.view} has no measure {lookup.column}", "name one of its measures")
        key = view.keys.get(lookup.key)
        if key is None or key.kind != next(iter(other.keys.values())).kind:
            hint = "name a key of this view, of the kind of the other's key"
            raise ViewError(f"lookup {column} by {lookup.key}", hint)
