"""A view's partials: the speed layer's pass over Arrow, and the batch layer's SQL for Spark.

speed: facts of a micro-batch --one DuckDB query per view, one thread--> partials per (lsn, key), and rejects.
batch: relations of facts --SQL text for Spark--> the same partials without lsn, merged.
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
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import aggregates, sequences
from spark_jobs.engine.sketches import sketched
from spark_jobs.expressions.dialect import Dialect, quote

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
    """Partials of `facts` (event type -> rows with the contract's fact_schema; rows may be of several lsns).

    A side input is under `sequences.side_input_key` of its type: all its facts with a lower lsn, and others at will.
    """
    found, rejects = Pass(), [REJECTS.empty_table()]
    present = frozenset(name for name, rows in facts.items() if rows.num_rows)
    many = sum(rows.num_rows for rows in facts.values()) > MANY_ROWS
    with _registered(facts) as connection:
        for view in views:
            try:
                partials, rejected = _one(connection, view, present, many)
            except (duckdb.Error, pa.ArrowException) as error:
                found.failed[view.column] = f"{type(error).__name__}: {error}"
            else:
                found.partials[view.column] = partials
                rejects += rejected
    found.rejects = pa.concat_tables(rejects)
    return found


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
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def _relation(event_type: str) -> str:
    return f"facts_{event_type}"


@dataclass(frozen=True)
class Queries:
    """DuckDB's text for one view and the event types that are there; `rejects` is None where nothing can fail."""

    partials: str
    rejects: str | None


def _queries(view: View, present: frozenset[str]) -> Queries | None:
    own = view.row_types if isinstance(view, SequenceView) else view.event_types
    facts_of = {name: _relation(name) for name in own if name in present}
    if not facts_of:
        return None
    d = Dialect.DUCKDB
    if isinstance(view, AggregateView):
        facts = aggregates.source(view, d, facts_of)
        return Queries(aggregates.partials(view, d, facts, ["lsn"]), aggregates.rejects(view, d, facts))
    facts_of |= {sequences.side_input_key(name): _relation(sequences.side_input_key(name)) for name in view.side_inputs}
    return Queries(sequences.rows(view, d, facts_of), sequences.rejects(view, d, facts_of))


def _one(
    connection: duckdb.DuckDBPyConnection, view: View, present: frozenset[str], many: bool
) -> tuple[pa.Table, list[pa.Table]]:
    schema = pa.schema([("lsn", pa.int64()), *view.partial_schema])
    queries = _queries(view, present & frozenset(view.event_types))
    if queries is None:
        return schema.empty_table(), []
    made = _run(connection, queries.partials, many)
    if isinstance(view, AggregateView):
        made = sketched(made, [part.column for part in view.state if part.kind == "SKETCH"])
    rejected = _run(connection, queries.rejects, many) if queries.rejects else None
    return made.cast(schema), [_named(rejected, view)] if rejected else []


def _run(connection: duckdb.DuckDBPyConnection, query: str, many: bool) -> pa.Table:
    """A streamed result is planned twice, a fetched one is copied once more: the latter is better for few rows."""
    if many:
        return connection.sql(query).to_arrow_table()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return connection.execute(query).to_arrow_table()


def _named(rejected: pa.Table, view: View) -> pa.Table:
    size = rejected.num_rows
    return (
        rejected.append_column("view", pa.repeat(pa.scalar(view.column), size))
        .append_column("reason", pa.repeat(pa.scalar(EXPRESSION_FAILED), size))
        .select(REJECTS.names)
        .cast(REJECTS)
    )


def batch_partials_sql(view: View, facts_of: Mapping[str, str]) -> str:
    """Spark: the partials of `facts_of` (every event type of the view -> relation), keyed as in partial_schema.

    Aggregate: keys, partial columns and, where the view has a bucket, `bucket_day`. Sequence: lsn and the stored rows.
    """
    if isinstance(view, SequenceView):
        return sequences.rows(view, Dialect.SPARK, facts_of)
    made = aggregates.partials(view, Dialect.SPARK, aggregates.source(view, Dialect.SPARK, facts_of))
    if view.bucket is None:
        return made
    return f"SELECT *, to_date({quote(view.bucket, Dialect.SPARK)}) AS bucket_day FROM ({made})"


def rejects_sql(view: View, facts_of: Mapping[str, str]) -> str | None:
    """Spark: lsn, topic, partition, offset, event_type, field of the facts that the view rejects; None: none can be."""
    if isinstance(view, SequenceView):
        return sequences.rejects(view, Dialect.SPARK, facts_of)
    return aggregates.rejects(view, Dialect.SPARK, aggregates.source(view, Dialect.SPARK, facts_of))


def merge_sql(view: AggregateView, relation: str) -> str:
    """Spark: one row per key of `relation`; the columns of partial_schema in and out."""
    return aggregates.merged(view, Dialect.SPARK, relation)
