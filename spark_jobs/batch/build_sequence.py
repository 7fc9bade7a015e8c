"""Build a sequence view: stored rows and results, each with its `stretch_end`.

facts -> rows -> (partitions of keys) mapInArrow(resolve, stretches) -> batch.<view>_rows (what a late event may still
touch), batch.<view>_results. The rule is in sequence_replay; here are Spark, Delta and the horizon.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs.batch.build_tasks import BuildMode, BuildTask
from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import partials, sequence_replay, sequences
from spark_jobs.engine.sequence_replay import Queries
from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.expressions.epoch import at_micros, since_epoch
from spark_jobs.ledger.source import Source
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, spark_reader, spark_writer, tables
from spark_jobs.storage.spark_reader import Slice

SPARK = Dialect.SPARK
MADE = ("made_rows", "made_results")
ROWS_AT_ONCE = 500_000
"""About how many rows a task resolves at once, in memory."""
ARROW_ROWS = 65_536


def build(spark: SparkSession, view: SequenceView, task: BuildTask) -> Source:
    """Build rows and results at the task's cut. Stored rows reach back to its horizon; older speed rows are late."""
    rows_table, results_table = view.tables
    row_columns, result_columns = columns(view)
    spark_writer.create(rows_table, row_columns)
    spark_writer.create(results_table, result_columns)
    with closing(_Relations(spark, view)) as relations:
        queries, of_horizon = _queries(spark, view, task, relations)
        horizon = _horizon(spark, task, of_horizon)
        _resolve(spark, view, task, relations, horizon)
        late = "" if horizon is None else f" WHERE stretch_end >= {since_epoch(horizon)}"
        rows = f"SELECT * FROM ({queries.rows}){late}"
        return Source(
            batch_version=_overwrite(spark, rows, row_columns, "ts", rows_table),
            results_version=_overwrite(spark, queries.results, result_columns, "opened_at", results_table),
            cut=task.cut,
            horizon=horizon,
        )


def columns(view: SequenceView) -> tuple[pa.Schema, pa.Schema]:
    """Columns of batch.<view>_rows and of batch.<view>_results."""
    end = ("stretch_end", pa.int64())
    rows = pa.schema([("lsn", pa.int64()), *view.partial_schema, end])
    return rows, pa.schema([*((name, arrow_of(kind)) for name, kind in view.result_kinds.items()), end])


def _overwrite(spark: SparkSession, sql: str, schema: pa.Schema, then: str, table: str) -> int:
    rows = spark.sql(sql).select(schema.names).sortWithinPartitions("key", then)
    return spark_writer.overwrite(rows, table, ["key", then, "stretch_end"])


class _Relations:
    """The temporary views of one build."""

    def __init__(self, spark: SparkSession, view: SequenceView) -> None:
        self._spark, self._view, self._persisted = spark, view, dict[str, DataFrame]()

    def name(self, what: str) -> str:
        return f"{self._view.id}__{what}"

    def add(self, name: str, rows: DataFrame, *, persist: bool) -> str:
        self._persisted[name] = rows.persist() if persist else rows
        rows.createOrReplaceTempView(name)
        return name

    def close(self) -> None:
        for name, rows in self._persisted.items():
            rows.unpersist()
            self._spark.catalog.dropTempView(name)


def _queries(
    spark: SparkSession, view: SequenceView, task: BuildTask, relations: _Relations
) -> tuple[Queries, list[str]]:
    """The queries, whose relations up to `live` exist then; and the relations that hold all rows."""
    everything, before = _facts(spark, view, Slice(task.cut)), list[str]()
    if task.mode is BuildMode.FULL:
        queries = sequence_replay.from_scratch(view, SPARK, relations.name, everything)
    else:
        tables_built = task.base.tables(view)
        built = [spark_reader.relation(spark_reader.rows(spark, *version)) for version in tables_built]
        before = built[:1]
        new = spark.sql(_facts(spark, view, Slice(task.cut, above=task.base.cut)))
        recent = relations.add(relations.name("recent"), new, persist=True)
        deep = _deep(spark, task, recent)
        whole = (relations.add(relations.name("deep"), spark.sql(deep), persist=True), everything) if deep else None
        queries = sequence_replay.replayed(view, SPARK, relations.name, recent, built, whole)
    for name, sql in queries.relations:
        relations.add(name, spark.sql(sql), persist=task.mode is not BuildMode.FULL)
    return queries, [relations.name("live"), *before]


def _resolve(
    spark: SparkSession, view: SequenceView, task: BuildTask, relations: _Relations, horizon: datetime | None
) -> None:
    """Add `made_rows` and `made_results`: `resolved` over `live`, a partition of keys at a time."""
    schema = pa.schema([(name, pa.struct(list(kinds))) for name, kinds in zip(MADE, columns(view), strict=True)])
    live = spark.table(relations.name("live"))
    if task.mode is BuildMode.FULL:
        size = sum(duckdb_reader.row_count(tables.facts(event_type)) for event_type in view.event_types)
    else:
        size = live.count()
    made = live.repartition(settings().cores + size // ROWS_AT_ONCE, "key").mapInArrow(
        _pass(view, schema, 0 if horizon is None else since_epoch(horizon)),
        from_arrow_schema(schema, prefer_timestamp_ntz=False),
    )
    together = relations.add(relations.name("made"), made, persist=True)
    for name in MADE:
        made = spark.sql(f"SELECT {name}.* FROM {together} WHERE {name} IS NOT NULL")
        relations.add(relations.name(name), made, persist=False)


def _pass(
    view: SequenceView, schema: pa.Schema, horizon: int
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    """The task: all rows of some keys -> rows that reach the horizon, and results, each in its struct column."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if live := list(batches):
            rows, results = sequence_replay.resolved(view, pa.Table.from_batches(live))
            recent = rows.filter(pc.greater_equal(rows["stretch_end"], horizon))
            for name, rows in zip(MADE, (recent, results), strict=True):
                yield from _in_struct(rows, name, schema)

    return run


def _in_struct(rows: pa.Table, name: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    fields = list(schema.field(name).type)
    for batch in rows.select([field.name for field in fields]).cast(pa.schema(fields)).to_batches(ARROW_ROWS):
        struct = batch.to_struct_array()
        arrays = [struct if field.name == name else pa.nulls(len(batch), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _facts(spark: SparkSession, view: SequenceView, wanted: Slice) -> str:
    """SQL of the rows of the wanted facts; their side inputs may have come at any time before them."""
    facts_of = dict(spark_reader.facts_of(spark, view.row_types, wanted))
    for name, relation in spark_reader.facts_of(spark, view.side_inputs, Slice(wanted.upto)).items():
        facts_of[sequences.side_input_key(name)] = relation
    return partials.of_facts(view, SPARK, facts_of)


def _deep(spark: SparkSession, task: BuildTask, recent: str) -> str | None:
    """The query of the keys that must be replayed from the facts; None, the usual case, if there are none."""
    if task.base.horizon is None:
        return None
    deep = sequence_replay.deep_keys(recent, since_epoch(task.base.horizon))
    return None if spark.sql(deep).isEmpty() else deep


def _horizon(spark: SparkSession, task: BuildTask, rows: list[str]) -> datetime | None:
    """`horizon_days` before the newest row of the slowest kind, or before the cut; never earlier than it was.

    The rows' own time decides, not the clock: otherwise history that is still being loaded would all be late.
    """
    together = " UNION ALL ".join(f"SELECT kind, ts FROM {relation}" for relation in rows)
    newest: int | None = spark.sql(
        f"SELECT min(ts) FROM (SELECT max(ts) AS ts FROM ({together}) GROUP BY kind)"
    ).collect()[0][0]
    if newest is None or task.cut_at is None:
        return task.base.horizon
    slowest = min(at_micros(newest), task.cut_at)
    horizon = slowest - timedelta(days=settings().horizon_days)
    return horizon if task.base.horizon is None else max(horizon, task.base.horizon)
