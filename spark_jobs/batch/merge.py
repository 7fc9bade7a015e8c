"""The second half of a build: what is staged becomes data files of batch tables, a range of keys at a time.

Unit (a view, a range of keys: staged files, files that were built) -> one DuckDB query, in a task -> files in the order
of the keys, which no version names yet -> the driver commits them (`build`).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from spark_jobs.batch.key_ranges import KeyRange
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import aggregates, sequence_replay
from spark_jobs.engine.partials import ViewFailed, in_order
from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables, task_files
from spark_jobs.storage.data_files import Written
from spark_jobs.storage.task_files import ARROW_ROWS, SHARES_PER_CORE, Batches, Task, write_in_order

D = Dialect.DUCKDB
BUCKET_DAY = "bucket_day"
STRETCH_END = "stretch_end"
ROWS_AT_ONCE = 500_000
"""About how many rows a unit has. What exceeds a task's memory is spilled to disk."""
REPORT = pa.schema([*task_files.REPORT, ("unit", pa.int64()), ("seconds", pa.float64())])
"""A row per file, and one per unit, which has no file; `rows` is -1 where the unit leaves what was built as it is."""
UNTOUCHED = -1


@dataclass(frozen=True)
class Unit:
    """The rows of one view in a range of keys.

    staged: files of new partials or rows; built: per table of the view, the files whose rows count on; without: days
    whose built rows do not count; may_stay: the files stay if nothing staged is in the range; rows: about how many.
    horizon: rows whose stretch ended before it are not stored, and their results are closed, in files of their own.
    deep: files of the keys of which all rows are staged; drop_only: nothing but their results leaves the files.
    """

    view: View
    keys: KeyRange
    staged: tuple[str, ...]
    built: tuple[tuple[str, ...], ...] = ()
    without: tuple[str, ...] = ()
    may_stay: bool = False
    rows: float = 0.0
    horizon: int = 0
    deep: tuple[str, ...] = ()
    drop_only: bool = False


@dataclass
class Done:
    """What became of a unit: its files per table, whether it leaves what was built as it is, seconds in its task."""

    files: dict[str, list[Written]] = field(default_factory=dict)
    is_untouched: bool = False
    seconds: float = 0.0


def columns(view: View) -> dict[str, pa.Schema]:
    """The columns of each table that a build of the view writes."""
    if isinstance(view, AggregateView):
        day = [(BUCKET_DAY, pa.date32())] if view.bucket else []
        return {view.tables[0]: pa.schema([*view.partial_schema, *day])}
    rows, results = view.tables
    kinds = ((name, arrow_of(kind)) for name, kind in view.result_kinds.items())
    end = (STRETCH_END, pa.int64())
    return {
        rows: pa.schema([("lsn", pa.int64()), *view.partial_schema, end]),
        results: pa.schema([*kinds, end]),
    }


def statistics(view: View) -> dict[str, list[str]]:
    """The columns of each table that readers look for."""
    if isinstance(view, AggregateView):
        return {view.tables[0]: [*view.ordered_by, *([BUCKET_DAY] if view.bucket else [])]}
    rows, results = view.tables
    return {rows: ["key", "ts", STRETCH_END], results: ["key", "opened_at", STRETCH_END]}


def merge(spark: SparkSession, units: Sequence[Unit]) -> list[Done]:
    """Do the units; for each what became of it, in their order."""
    done, shares = [Done() for _ in units], _shares(units)
    if not shares:
        return done
    report = task_files.run(task_files.shares(spark, len(shares)), _merging(units, shares), REPORT)
    for row in report.to_pylist():
        unit = done[row["unit"]]
        if row["file"] is not None:
            unit.files.setdefault(row["name"], []).append(Written(**row["file"]))
        else:
            unit.seconds, unit.is_untouched = row["seconds"], row["rows"] == UNTOUCHED
    return done


def _shares(units: Sequence[Unit]) -> list[list[int]]:
    """The numbers of the units in shares of about equal work, a few for each core, the largest first."""
    work = {number: _work(unit) for number, unit in enumerate(units)}
    most, size = sum(work.values()) / settings().cores / SHARES_PER_CORE, 0.0
    shares = list[list[int]]()
    for number in sorted(work, key=lambda number: -work[number]):
        if not shares or size + work[number] > most:
            shares.append([])
            size = 0.0
        shares[-1].append(number)
        size += work[number]
    return shares


def _work(unit: Unit) -> float:
    """What a unit costs, in rows of an aggregate; those of a sequence are sorted a few times, and each query costs."""
    return unit.rows * (10 if isinstance(unit.view, SequenceView) else 1) + 20_000


def _merging(units: Sequence[Unit], shares: list[list[int]]) -> Task:
    roots = {table: tables.path(table) for unit in units for table in unit.view.tables}

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for share in task_files.numbers(batches):
            for number in shares[share]:
                began, said = time.monotonic(), 0
                for told in _done(units[number], roots):
                    if told is None:
                        said = UNTOUCHED
                    else:
                        yield from _told({**told.to_pylist()[0], "unit": number})
                took = time.monotonic() - began
                yield from _told({"name": units[number].view.id, "rows": said, "unit": number, "seconds": took})

    return run


def _told(row: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    yield from pa.Table.from_pylist([row], schema=REPORT).to_batches()


def _done(unit: Unit, roots: dict[str, str]) -> Iterator[pa.RecordBatch | None]:
    """Write the unit's files and report them; None if what was built stays as it is. Raises ViewFailed."""
    con, view = duckdb_reader.of_task(), unit.view
    by_lsn = [("lsn", pa.int64())] if isinstance(view, SequenceView) else []
    try:
        _register(con, "staged", unit.staged, pa.schema([*by_lsn, *view.partial_schema]), unit.keys.expression())
        if unit.may_stay and _stays(con, unit):
            yield None
        elif unit.drop_only:
            yield from _without_deep(con, unit, roots)
        elif isinstance(view, AggregateView):
            yield from _aggregate(con, unit, view, roots)
        else:
            yield from _sequence(con, unit, view, roots)
    except (duckdb.Error, OSError) as error:  # the second where its rows were being written
        raise ViewFailed(f"view {view.id}, about {unit.rows:,.0f} rows: {error}") from error


def _stays(con: duckdb.DuckDBPyConnection, unit: Unit) -> bool:
    """Whether nothing staged is in the range, and the horizon has left no row behind that was built."""
    if con.execute("SELECT 1 FROM staged LIMIT 1").fetchall():
        return False
    left = ds.field(STRETCH_END) < unit.horizon
    return not (unit.horizon and unit.built[0] and ds.dataset(list(unit.built[0])).count_rows(filter=left))


def _register(
    con: duckdb.DuckDBPyConnection,
    name: str,
    files: Sequence[str],
    schema: pa.Schema,
    where: ds.Expression | None = None,
) -> None:
    """Name the rows of the files, or an empty relation where there are none."""
    rows = ds.dataset(list(files), format="parquet") if files else schema.empty_table()
    con.register(name, rows.filter(where) if files and where is not None else rows)


def _aggregate(
    con: duckdb.DuckDBPyConnection, unit: Unit, view: AggregateView, roots: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """Partials of each key, those that were built among them."""
    [(table, schema)] = columns(view).items()
    names, counting = listed(view.partial_schema.names, D), unit.keys.expression()
    if unit.without:
        counting &= ~ds.field(BUCKET_DAY).isin(pa.array(map(date.fromisoformat, unit.without), pa.date32()))
    parts = ["staged"]
    for files in unit.built:
        _register(con, "built", files, schema, counting)
        parts.append("built")
    both = " UNION ALL ".join(f"SELECT {names} FROM {part}" for part in parts)
    day = f", CAST({quote(view.bucket, D)} AS DATE) AS {BUCKET_DAY}" if view.bucket else ""
    merged = f"SELECT *{day} FROM ({aggregates.merged(view, D, f'({both})')})"
    yield from _written(con, unit, table, roots, in_order(merged, view.ordered_by))


def _sequence(
    con: duckdb.DuckDBPyConnection, unit: Unit, view: SequenceView, roots: dict[str, str]
) -> Iterator[pa.RecordBatch]:
    """Rows that a late event may still touch; results, closed ones apart from those that are open."""
    rows_table, results_table = view.tables
    built = ["built_rows", "built_results"] if unit.built else []
    for name, files, schema in zip(built, unit.built, columns(view).values(), strict=False):
        _register(con, name, files, schema, unit.keys.expression())
    if unit.deep:
        con.register("deep", ds.dataset(list(unit.deep), format="parquet"))
    new = listed(["lsn", *view.row_kinds], D)
    con.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT {new} FROM staged")
    rows, results = sequence_replay.replayed(con, view, "fresh", built, "deep" if unit.deep else None)
    _make(con, f"FROM ({rows}) WHERE {STRETCH_END} >= {unit.horizon:d}")
    yield from _written(con, unit, rows_table, roots, in_order("FROM made", ("key", "ts")))
    _make(con, results)
    for when in (f"< {unit.horizon:d}", f">= {unit.horizon:d}"):
        of_kind = in_order(f"SELECT * FROM made WHERE {STRETCH_END} {when}", ("key", "opened_at"))
        yield from _written(con, unit, results_table, roots, of_kind)
    duckdb_reader.drop(con, "fresh", "live", "resolved", "ends", "made")


def _without_deep(con: duckdb.DuckDBPyConnection, unit: Unit, roots: dict[str, str]) -> Iterator[pa.RecordBatch | None]:
    """Closed results without those of deep keys, which are made once more."""
    _, results_table = unit.view.tables
    con.register("built", ds.dataset(list(unit.built[1]), format="parquet"))
    con.register("deep", ds.dataset(list(unit.deep), format="parquet"))
    if not con.execute("SELECT 1 FROM built SEMI JOIN deep USING (key) LIMIT 1").fetchall():
        yield None
        return
    _make(con, "FROM built ANTI JOIN deep USING (key)")
    yield from _written(con, unit, results_table, roots, in_order("FROM made", ("key", "opened_at")))
    duckdb_reader.drop(con, "made")


def _make(con: duckdb.DuckDBPyConnection, query: str) -> None:
    """The table `made`, to be put in order from there: a sort in one query with joins does not spill enough."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE made AS {query}")


def _written(
    con: duckdb.DuckDBPyConnection, unit: Unit, table: str, roots: dict[str, str], query: str
) -> Iterator[pa.RecordBatch]:
    schema, key = columns(unit.view)[table], next(iter(unit.keys.columns), None)
    rows = con.sql(f"SELECT {listed(schema.names, D)} FROM ({query})").to_arrow_reader(ARROW_ROWS)
    cast = (part for batch in rows for part in pa.Table.from_batches([batch]).cast(schema).to_batches())
    yield from write_in_order(table, roots[table], cast, key, statistics(unit.view)[table])
