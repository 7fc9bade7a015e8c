"""Build an aggregate view: keys and partial columns into `batch.<view>`.

facts -> partials (-> merged with what was built) -> one new version.
"""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.batch.build_tasks import BuildMode, BuildTask
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.engine.partials import batch_partials_sql, merge_sql
from spark_jobs.storage import spark_reader, spark_writer, tables
from spark_jobs.storage.spark_reader import Slice


def build(spark: SparkSession, view: AggregateView, task: BuildTask) -> int:
    """The version of batch.<view> at the task's cut."""
    table = tables.batch(view.id)
    columns = _columns(view)
    spark_writer.create(table, columns)
    rows = spark.sql(_sql(spark, view, task)).select(columns.names)
    if task.mode is BuildMode.BUCKETS:
        assert task.base.batch_version is not None
        return spark_writer.replace_days(spark, _laid_out(view, rows), table, task.days, task.base.batch_version)
    keys = [name for name in (*view.key_schema.names, spark_writer.BUCKET_DAY) if name in columns.names]
    return spark_writer.overwrite(_laid_out(view, rows), table, keys)


def _columns(view: AggregateView) -> pa.Schema:
    bucket = [(spark_writer.BUCKET_DAY, pa.date32())] if view.bucket else []
    return pa.schema([*view.partial_schema, *bucket])


def _laid_out(view: AggregateView, rows: DataFrame) -> DataFrame:
    keys = list(view.key_schema.names)
    return spark_writer.by_bucket(rows, keys) if view.bucket else spark_writer.sorted_by(rows, keys)


def _sql(spark: SparkSession, view: AggregateView, task: BuildTask) -> str:
    if task.mode is BuildMode.FULL:
        return _partials(spark, view, Slice(task.cut))
    if task.mode is BuildMode.BUCKETS:
        return _partials(spark, view, Slice(task.cut, days=task.days))
    new = _partials(spark, view, Slice(task.cut, above=task.base.cut))
    names = ", ".join(f"`{name}`" for name in view.partial_schema.names)
    built = spark_reader.relation(spark_reader.rows(spark, tables.batch(view.id), task.base.batch_version))
    return merge_sql(view, f"(SELECT {names} FROM {built} UNION ALL SELECT {names} FROM ({new}))")


def _partials(spark: SparkSession, view: AggregateView, wanted: Slice) -> str:
    return batch_partials_sql(view, spark_reader.facts_of(spark, view.event_types, wanted))
