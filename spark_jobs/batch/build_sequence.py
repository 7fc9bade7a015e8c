"""Build a sequence view: stored rows and results, each with its `stretch_end`.

facts -> rows -> resolve -> stretches -> batch.<view>_rows (what a late event may still touch), batch.<view>_results.
The queries are in resolving.py; here they meet Spark, Delta and the horizon.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs import tables
from spark_jobs.batch import delta, resolving
from spark_jobs.batch.resolving import Queries, Stored
from spark_jobs.batch.work import Task, Way
from spark_jobs.dialect import Dialect
from spark_jobs.expressions import arrow_of
from spark_jobs.partials import batch_partials_sql
from spark_jobs.settings import settings
from spark_jobs.view import SequenceView

SPARK = Dialect.SPARK
MICROSECOND = timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Built:
    """Versions of the two tables. `horizon`: stored rows reach back to it; speed rows before it count as late."""

    rows_version: int
    results_version: int
    horizon: datetime | None


def build(spark: SparkSession, view: SequenceView, task: Task) -> Built:
    """Rows and results at the task's cut."""
    rows_table, results_table = tables.batch_rows(view.id), tables.batch_results(view.id)
    row_columns, result_columns = columns(view)
    delta.create(spark, rows_table, row_columns)
    delta.create(spark, results_table, result_columns)
    with _relations(spark, view, task) as (live, queries):
        horizon = _horizon(spark, task, live)
        late = "" if horizon is None else f" WHERE stretch_end >= {micros(horizon)}"
        rows = f"SELECT * FROM ({queries.rows}){late}"
        return Built(
            delta.overwrite(_laid_out(spark, rows, row_columns, "ts"), rows_table),
            delta.overwrite(_laid_out(spark, queries.results, result_columns, "opened_at"), results_table),
            horizon,
        )


def columns(view: SequenceView) -> tuple[pa.Schema, pa.Schema]:
    """Columns of batch.<view>_rows and of batch.<view>_results."""
    end = ("stretch_end", pa.int64())
    rows = pa.schema([("lsn", pa.int64()), *view.partial_schema, end])
    return rows, pa.schema([*((name, arrow_of(kind)) for name, kind in view.result_kinds.items()), end])


def micros(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (at - EPOCH) // MICROSECOND


def _laid_out(spark: SparkSession, sql: str, schema: pa.Schema, then: str) -> DataFrame:
    return delta.sorted_by(spark.sql(sql).select(schema.names), ["key", then])


@contextmanager
def _relations(spark: SparkSession, view: SequenceView, task: Task) -> Iterator[tuple[list[str], Queries]]:
    """The relations of the build as persisted temporary views; gives those that hold all rows, and the queries."""
    persisted: dict[str, DataFrame] = {}

    def named(what: str) -> str:
        return f"{view.id}__{what}"

    def persist(name: str, sql: str) -> str:
        persisted[name] = spark.sql(sql).persist()
        persisted[name].createOrReplaceTempView(name)
        return name

    try:
        everything = _facts(view, task)
        if task.way is Way.FULL:
            queries, stored = resolving.from_scratch(view, SPARK, named, everything), []
        else:
            before = Stored(
                f"{tables.batch_rows(view.id)} VERSION AS OF {task.base.batch_version}",
                f"{tables.batch_results(view.id)} VERSION AS OF {task.base.results_version}",
            )
            recent = persist(named("recent"), _facts(view, task, f"lsn > {int(task.base.cut)}"))
            deep = _deep(spark, task, recent)
            whole = (persist(named("deep"), deep), everything) if deep else None
            queries, stored = resolving.replayed(view, SPARK, named, recent, before, whole), [before.rows]
        for name, sql in queries.relations:
            persist(name, sql)
        yield [named("live"), *stored], queries
    finally:
        for name, rows in persisted.items():
            rows.unpersist()
            spark.catalog.dropTempView(name)


def _facts(view: SequenceView, task: Task, where: str = "") -> str:
    return batch_partials_sql(view, delta.facts_of(view.event_types, task.cut, where))


def _deep(spark: SparkSession, task: Task, recent: str) -> str | None:
    """The query of the keys that must be replayed from the facts; None, the usual case, where there is none."""
    if task.base.horizon is None:
        return None
    deep = resolving.deep_keys(recent, micros(task.base.horizon))
    return None if spark.sql(deep).isEmpty() else deep


def _horizon(spark: SparkSession, task: Task, rows: list[str]) -> datetime | None:
    """`horizon_days` before the newest row of the slowest kind, or before the cut; never earlier than it was.

    By the rows' own time and not by the clock, so that history that is still being loaded is not all late.
    """
    together = " UNION ALL ".join(f"SELECT kind, ts FROM {relation}" for relation in rows)
    newest: int | None = spark.sql(
        f"SELECT min(ts) FROM (SELECT max(ts) AS ts FROM ({together}) GROUP BY kind)"
    ).collect()[0][0]
    if newest is None or task.cut_at is None:
        return task.base.horizon
    slowest = min(EPOCH + newest * MICROSECOND, task.cut_at)
    found = slowest - timedelta(days=settings().horizon_days)
    return found if task.base.horizon is None else max(found, task.base.horizon)
