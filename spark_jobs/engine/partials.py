"""A view's partials: their SQL, and the pass of both layers over facts in Arrow.

facts of a micro-batch --one DuckDB query per view, one thread--> partials per (lsn, key), and rejects. Where they are
few, the queries are planned once and kept (`plans`).
A view whose query fails is reported in `failed`; the others are not touched. Pure: no Spark, no files.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache

import duckdb
import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.engine import aggregates, sequences
from spark_jobs.engine.plans import Plans
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.engine.sketches import finished
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, failing, listed, quote, rendered

D = Dialect.DUCKDB
DAY = "CAST(make_timestamp(epoch_us(occurred_at)) AS DATE)"
MANY_ROWS = 50_000
BY_LSN = pa.schema([("lsn", pa.int64())])
EXPRESSION_FAILED = "expression_failed"
Ask = Callable[[str], pa.Table]
"""A query -> its rows."""
REJECTS = pa.schema([*row_types.COORDINATES, *((n, pa.string()) for n in ("event_type", "view", "reason", "field"))])


REJECTED = pa.schema(
    [*row_types.COORDINATES, ("event_type", pa.string()), ("day", pa.date32()), ("field", pa.string())]
)
"""A fact that a view's expressions reject, and the part of the view that fails."""


class ViewFailed(RuntimeError):
    """A view's query failed; the message names the view."""


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
    many = sum(rows.num_rows for rows in facts.values()) > MANY_ROWS
    with (_planned_once if many else _kept)(facts) as (ask, known):
        for view in views:
            try:
                partials, rejected = _computed(ask, view, _relations(view, facts, known))
            except (duckdb.Error, pa.ArrowException, ViewFailed) as error:
                passed.failed[view.column] = f"{type(error).__name__}: {error}"
            else:
                passed.partials[view.column] = partials
                refused += rejected
    passed.rejects = pa.concat_tables(refused)
    return passed


def to_build(
    connection: duckdb.DuckDBPyConnection, facts: Mapping[str, pa.Table], views: Sequence[View]
) -> Iterator[tuple[View, pa.Table]]:
    """What a build needs of `facts` (as for `compute`), in the order of `ordered_by`: an aggregate's partials
    per key, a sequence's rows with their lsn. Views that use none of the facts are left out. Raises ViewFailed.
    """
    with _registered(connection, facts):
        for view in views:
            if facts_of := _relations(view, facts):
                schema = pa.schema([*(BY_LSN if isinstance(view, SequenceView) else ()), *view.partial_schema])
                made = of_facts(view, facts_of, schema.names[: -len(view.partial_schema)])
                try:
                    rows = connection.sql(in_order(made, view.ordered_by)).to_arrow_table()
                except duckdb.Error as error:
                    raise ViewFailed(f"view {view.id}: {error}") from error
                yield view, finished(rows, view.sketches, schema)


def rejected(
    connection: duckdb.DuckDBPyConnection, facts: Mapping[str, pa.Table], views: Sequence[View]
) -> Iterator[tuple[View, pa.Table]]:
    """What the views reject of the facts (as for `compute`), schema REJECTED; views that reject nothing are left out.

    Raises ViewFailed.
    """
    with _registered(connection, facts):
        for view in views:
            facts_of = _relations(view, facts)
            if facts_of and (failing := rejects(view, facts_of)):
                try:
                    rows = connection.sql(failing).to_arrow_table().cast(REJECTED)
                except duckdb.Error as error:
                    raise ViewFailed(f"rejects of view {view.id}: {error}") from error
                if rows.num_rows:
                    yield view, rows


def in_order(query: str, columns: Sequence[str]) -> str:
    """The query with its rows in the order of the columns, for DuckDB; nulls come first."""
    order = ", ".join(f"{quote(name, D)} NULLS FIRST" for name in columns)
    return f"FROM ({query}) ORDER BY {order}" if order else query


@contextmanager
def _planned_once(facts: Mapping[str, pa.Table]) -> Iterator[tuple[Ask, Collection[str]]]:
    """For this pass alone, over tables: a plan reads the columns that it needs."""
    with duckdb_session.connect() as connection, _registered(connection, facts):
        yield lambda query: connection.sql(query).to_arrow_table(), ()


@contextmanager
def _kept(facts: Mapping[str, pa.Table]) -> Iterator[tuple[Ask, Collection[str]]]:
    """The process's plans; fresh ones where the last pass left them broken."""
    if not _plans().is_usable():
        _plans.cache_clear()
    with _plans().over({_relation(event_type): rows for event_type, rows in facts.items()}) as plans:
        yield plans.rows, plans.relations


@contextmanager
def _registered(
    connection: duckdb.DuckDBPyConnection, facts: Mapping[str, pa.Table]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The connection with the facts as views."""
    for event_type, rows in facts.items():
        connection.register(_relation(event_type), rows)
    try:
        yield connection
    finally:
        for event_type in facts:
            connection.unregister(_relation(event_type))


@cache
def _plans() -> Plans:
    """The process keeps them. One thread: Spark already runs one task per core."""
    return Plans(duckdb_session.connect())


def _relation(event_type: str) -> str:
    return f"facts_{event_type}"


def of_facts(view: View, facts_of: Mapping[str, str], positions: Sequence[str] = ("lsn",)) -> str:
    """SELECT of the partials of `facts_of` (event type -> relation): an aggregate's per key and `positions`, a
    sequence's stored rows with these columns of their facts before them."""
    if isinstance(view, SequenceView):
        return sequences.rows(view, facts_of, positions)
    return aggregates.partials(view, D, aggregates.source(view, D, facts_of), positions)


def counted(view: View, facts_of: Mapping[str, str]) -> str:
    """SELECT of the facts that count in the view, not yet grouped; for a sequence as its rows."""
    if isinstance(view, SequenceView):
        return sequences.rows(view, facts_of)
    return aggregates.counted(view, D, aggregates.source(view, D, facts_of))


def rejects(view: View, facts_of: Mapping[str, str]) -> str | None:
    """SELECT with the columns of REJECTED, of the view's rejects; None if there can be none."""
    if isinstance(view, SequenceView):
        faults = sequences.faults(view, facts_of)
    else:
        faults = aggregates.faults(view, aggregates.source(view, D, facts_of))
    columns, selects = listed([*aggregates.COORDINATES, "event_type"], D), []
    for part, where, failed, facts in faults:
        where_fails = failing(where, D) if where else None
        if failed or where_fails:
            only = f"({rendered(where, D)})" if where else "TRUE"
            field = f"CASE WHEN {where_fails or 'FALSE'} THEN '{part}' WHEN {only} THEN {failed or 'NULL'} END"
            selects.append(f"SELECT {columns}, {DAY} AS day, {field} AS field FROM {facts}")
    if not selects:
        return None
    both = " UNION ALL ".join(selects)
    return f"SELECT {columns}, day, min(field) AS field FROM ({both}) WHERE field IS NOT NULL GROUP BY {columns}, day"


def _relations(view: View, facts: Mapping[str, pa.Table], known: Collection[str] = ()) -> dict[str, str]:
    """What the view reads of the facts that there are; empty where none become its rows. Raises ViewFailed.

    known: relations that may be read though they have no rows, so that one query is asked, whatever types come.
    """
    there = [name for name in view.row_types if name in facts and facts[name].num_rows]
    if not there:
        return {}
    beside = [side_input_key(name) for name in view.side_inputs]
    if absent := set(beside) - facts.keys():
        raise ViewFailed(f"view {view.id}: {', '.join(sorted(absent))} is not among the facts")
    read = [name for name in view.row_types if name in there or _relation(name) in known]
    return {name: _relation(name) for name in (*read, *beside)}


def _computed(ask: Ask, view: View, facts_of: Mapping[str, str]) -> tuple[pa.Table, list[pa.Table]]:
    """The view's partials, and the facts that it rejects."""
    schema = pa.schema([*BY_LSN, *view.partial_schema])
    if not facts_of:
        return schema.empty_table(), []
    of_view, failing = _queries(view, tuple(facts_of))
    made, rejected = ask(of_view), ask(failing) if failing else None
    return finished(made, view.sketches, schema), [_named(rejected, view)] if rejected else []


@lru_cache(maxsize=500)
def _queries(view: View, types: tuple[str, ...]) -> tuple[str, str | None]:
    """The query of the view's partials, and that of the facts that it rejects, where it can reject any."""
    facts_of = {name: _relation(name) for name in types}
    return of_facts(view, facts_of), rejects(view, facts_of)


def _named(rejected: pa.Table, view: View) -> pa.Table:
    for name, said in {"view": view.column, "reason": EXPRESSION_FAILED}.items():
        rejected = rejected.append_column(name, pa.repeat(said, rejected.num_rows))
    return rejected.select(REJECTS.names).cast(REJECTS)
