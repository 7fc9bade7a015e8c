"""A view's partials: their SQL, for both engines, and the speed layer's pass over Arrow.

facts of a micro-batch --one DuckDB query per view, one thread--> partials per (lsn, key), and rejects.
A view whose query fails is reported in `failed`; the others are not touched. Pure: no Spark, no files.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

import duckdb
import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import aggregates, sequences
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.engine.sketches import finished
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, failing, listed, rendered

MANY_ROWS = 50_000
EXPRESSION_FAILED = "expression_failed"
REJECTS = pa.schema([*row_types.COORDINATES, *((n, pa.string()) for n in ("event_type", "view", "reason", "field"))])


@dataclass
class Pass:
    """partials: view column -> table (lsn, then the view's partial_schema) of every view that did not fail.

    rejects: facts that a view's expressions reject (schema REJECTS). failed: view column -> why its pass failed.
    """

    partials: dict[str, pa.Table] = field(default_factory=dict)
    rejects: pa.Table = field(default_factory=REJECTS.empty_table)
    failed: dict[str, str] = field(default_factory=dict)


def compute(facts: Mapping[str, pa.Table], views: Sequence[View]) -> Pass:
    """Compute the views' partials of `facts` (event type -> rows with the contract's fact_schema, of any lsns).

    A side input is under `sequences.side_input_key` of its type: all facts with a lower lsn; more do no harm.
    """
    passed, refused = Pass(), [REJECTS.empty_table()]
    present = frozenset(name for name, rows in facts.items() if rows.num_rows)
    many = sum(rows.num_rows for rows in facts.values()) > MANY_ROWS
    with _registered(facts) as connection:
        for view in views:
            try:
                partials, rejected = _computed(connection, view, present, many)
            except (duckdb.Error, pa.ArrowException) as error:
                passed.failed[view.column] = f"{type(error).__name__}: {error}"
            else:
                passed.partials[view.column] = partials
                refused += rejected
    passed.rejects = pa.concat_tables(refused)
    return passed


@contextmanager
def _registered(facts: Mapping[str, pa.Table]) -> Iterator[duckdb.DuckDBPyConnection]:
    """The process's connection with the facts as views; a fresh one where the last pass left it broken."""
    connection = _connection()
    try:
        connection.execute("SELECT 1").fetchall()
    except duckdb.Error:
        _connection.cache_clear()
        connection = _connection()
    for event_type, rows in facts.items():
        connection.register(_relation(event_type), rows)
    try:
        yield connection
    finally:
        for event_type in facts:
            connection.unregister(_relation(event_type))


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One in-memory DuckDB per process, one thread: Spark already runs one task per core."""
    return duckdb_session.connect()


def _relation(event_type: str) -> str:
    return f"facts_{event_type}"


def of_facts(view: View, d: Dialect, facts_of: Mapping[str, str], positions: Sequence[str] = ("lsn",)) -> str:
    """SELECT of the partials of `facts_of` (event type -> relation): an aggregate's per key and `positions`, a
    sequence's stored rows with these columns of their facts before them."""
    if isinstance(view, SequenceView):
        return sequences.rows(view, d, facts_of, positions)
    return aggregates.partials(view, d, aggregates.source(view, d, facts_of), positions)


def counted(view: View, d: Dialect, facts_of: Mapping[str, str]) -> str:
    """SELECT of the facts that count in the view, not yet grouped; for a sequence as its rows."""
    if isinstance(view, SequenceView):
        return sequences.rows(view, d, facts_of)
    return aggregates.counted(view, d, aggregates.source(view, d, facts_of))


def rejects(view: View, d: Dialect, facts_of: Mapping[str, str]) -> str | None:
    """SELECT of lsn, topic, partition, offset, event_type, field of the view's rejects; None if there can be none."""
    if isinstance(view, SequenceView):
        faults = sequences.faults(view, d, facts_of)
    else:
        faults = aggregates.faults(view, d, aggregates.source(view, d, facts_of))
    columns, selects = listed([*aggregates.COORDINATES, "event_type"], d), []
    for part, where, failed, facts in faults:
        where_fails = failing(where, d) if where else None
        if failed or where_fails:
            only = f"({rendered(where, d)})" if where else "TRUE"
            field = f"CASE WHEN {where_fails or 'FALSE'} THEN '{part}' WHEN {only} THEN {failed or 'NULL'} END"
            selects.append(f"SELECT {columns}, {field} AS field FROM {facts}")
    if not selects:
        return None
    both = " UNION ALL ".join(selects)
    return f"SELECT {columns}, min(field) AS field FROM ({both}) WHERE field IS NOT NULL GROUP BY {columns}"


def _computed(
    connection: duckdb.DuckDBPyConnection, view: View, present: frozenset[str], many: bool
) -> tuple[pa.Table, list[pa.Table]]:
    """The view's partials, and the facts that it rejects."""
    schema = pa.schema([("lsn", pa.int64()), *view.partial_schema])
    facts_of = {name: _relation(name) for name in view.row_types if name in present}
    if not facts_of:
        return schema.empty_table(), []
    facts_of |= {side_input_key(name): _relation(side_input_key(name)) for name in view.side_inputs}
    made = _run(connection, of_facts(view, Dialect.DUCKDB, facts_of), many)
    failing = rejects(view, Dialect.DUCKDB, facts_of)
    rejected = _run(connection, failing, many) if failing else None
    return finished(made, view.sketches, schema), [_named(rejected, view)] if rejected else []


def _run(connection: duckdb.DuckDBPyConnection, query: str, many: bool) -> pa.Table:
    """Run the query. A streamed result is planned twice, a fetched one is copied once more: better for few rows."""
    if many:
        return connection.sql(query).to_arrow_table()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return connection.execute(query).to_arrow_table()


def _named(rejected: pa.Table, view: View) -> pa.Table:
    for name, said in {"view": view.column, "reason": EXPRESSION_FAILED}.items():
        rejected = rejected.append_column(name, pa.repeat(said, rejected.num_rows))
    return rejected.select(REJECTS.names).cast(REJECTS)
