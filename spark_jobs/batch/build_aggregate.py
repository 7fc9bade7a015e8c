"""Build an aggregate view: keys and partial columns into `batch.<view>`.

facts -> partials (-> merged with what was built) -> one new version.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.batch.build_tasks import BuildMode, BuildTask
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.engine import aggregates, partials
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.source import Source
from spark_jobs.storage import spark_reader, spark_writer
from spark_jobs.storage.spark_reader import Slice


def build(spark: SparkSession, view: AggregateView, task: BuildTask) -> Source:
    """Build batch.<view> at the task's cut."""
    [table] = view.tables
    columns = _columns(view)
    spark_writer.create(table, columns)
    rows = spark.sql(_sql(spark, view, task)).select(columns.names)
    if task.mode is BuildMode.BUCKETS:
        assert task.base.batch_version is not None
        version = spark_writer.replace_days(spark, _laid_out(view, rows), table, task.days, task.base.batch_version)
    else:
        keys = [name for name in (*view.key_schema.names, spark_writer.BUCKET_DAY) if name in columns.names]
        version = spark_writer.overwrite(_laid_out(view, rows), table, keys)
    return Source(batch_version=version, results_version=None, cut=task.cut, horizon=None)


def _columns(view: AggregateView) -> pa.Schema:
    bucket = [(spark_writer.BUCKET_DAY, pa.date32())] if view.bucket else []
    return pa.schema([*view.partial_schema, *bucket])


def _laid_out(view: AggregateView, rows: DataFrame) -> DataFrame:
    """Sorted in each file, so that a point query reads a small part of it.

    By bucket days first, where there are any: a day is in few files, and a file of a large table has few days.
    """
    keys = list(view.key_schema.names)
    if view.bucket:
        return rows.repartition(spark_writer.BUCKET_DAY).sortWithinPartitions(spark_writer.BUCKET_DAY, *keys)
    return rows.sortWithinPartitions(*keys)


def _sql(spark: SparkSession, view: AggregateView, task: BuildTask) -> str:
    if task.mode is BuildMode.FULL:
        return _partials(spark, view, Slice(task.cut))
    if task.mode is BuildMode.BUCKETS:
        return _partials(spark, view, Slice(task.cut, days=task.days))
    new = _partials(spark, view, Slice(task.cut, above=task.base.cut))
    names = listed(view.partial_schema.names, Dialect.SPARK)
    built = spark_reader.relation(spark_reader.rows(spark, view.tables[0], task.base.batch_version))
    both = f"(SELECT {names} FROM {built} UNION ALL SELECT {names} FROM ({new}))"
    return aggregates.merged(view, Dialect.SPARK, both)


def _partials(spark: SparkSession, view: AggregateView, wanted: Slice) -> str:
    made = partials.of_facts(view, Dialect.SPARK, spark_reader.facts_of(spark, view.event_types, wanted), ())
    if view.bucket is None:
        return made
    day = f"to_date({quote(view.bucket, Dialect.SPARK)}) AS {spark_writer.BUCKET_DAY}"
    return f"SELECT *, {day} FROM ({made})"
