"""Build an aggregate view: keys and partial columns into `batch.<view>`.

facts -> partials (-> merged with what was built) -> one new version.
"""

import pyarrow as pa
from pyspark.sql import SparkSession

from spark_jobs.batch.build_tasks import BuildMode, BuildTask
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.engine import aggregates, partials
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.source import Source
from spark_jobs.storage import spark_reader, spark_writer
from spark_jobs.storage.spark_reader import Slice


def build(spark: SparkSession, view: AggregateView, task: BuildTask) -> Source:
    """Build batch.<view> at the task's cut."""
    [table], keys = view.tables, list(view.key_schema.names)
    bucket = [spark_writer.BUCKET_DAY] if view.bucket else []
    columns = pa.schema([*view.partial_schema, *((name, pa.date32()) for name in bucket)])
    spark_writer.create(table, columns)
    rows = spark.sql(_sql(spark, view, task)).select(columns.names)
    # A day is in few files, and a file of a large table has few days; a point query reads a small part of a file.
    rows = (rows.repartition(*bucket) if bucket else rows).sortWithinPartitions(*bucket, *keys)
    if task.mode is BuildMode.BUCKETS:
        assert task.base.batch_version is not None
        version = spark_writer.replace_days(spark, rows, table, task.days, task.base.batch_version)
    else:
        version = spark_writer.overwrite(rows, table, [*keys, *bucket])
    return Source(batch_version=version, results_version=None, cut=task.cut, horizon=None)


def _sql(spark: SparkSession, view: AggregateView, task: BuildTask) -> str:
    if task.mode is not BuildMode.MERGE:
        return _partials(spark, view, Slice(task.cut, days=task.days or None))
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
