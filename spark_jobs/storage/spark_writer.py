"""Write a version of a batch table, and know which version it is.

rows -> sorted -> one Delta commit -> version. A batch table has one writer: the active run.
"""

import itertools
from collections.abc import Iterator, Sequence

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.settings import settings
from spark_jobs.storage import data_files, ddl, duckdb_reader, tables, task_files
from spark_jobs.storage.data_files import FileWriter, Written
from spark_jobs.storage.spark_reader import in_days
from spark_jobs.storage.task_files import Batches, Task

BUCKET_DAY = "bucket_day"
MANY_FILES = 64


def create(table: str, schema: pa.Schema) -> None:
    """Create a batch table, unless it exists.

    Delta refuses time travel past the two retention properties, so they are the longest promise; what is not needed
    any more is removed by `tidemark retention` alone.
    """
    kept = f"interval {settings().history_days} days"
    properties = {"delta.deletedFileRetentionDuration": kept, "delta.logRetentionDuration": kept}
    ddl.create(table, schema, properties=properties)


def replace_where(rows: DataFrame, table: str, where: str) -> None:
    """Replace the rows that match by `rows`, all of which match.

    By the path, like every write here: by the table's name Delta makes it a CREATE OR REPLACE TABLE, which tries to
    alter Hive's copy of the schema each time.
    """
    rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(tables.path(table))


def overwrite(rows: DataFrame, table: str, keys: Sequence[str]) -> int:
    """Replace all rows; returns the version. `keys`: columns that readers look for."""
    data_files.commit(tables.path(table), _written(rows, table, keys), {}, "overwrite")
    return duckdb_reader.version(table)


def append(rows: DataFrame, table: str) -> None:
    data_files.commit(tables.path(table), _written(rows, table, data_files.WITH_STATISTICS), {})


def _written(rows: DataFrame, table: str, keys: Sequence[str]) -> list[Written]:
    """The tasks write the files (ADR 17): a commit by Spark is a handful of jobs over Delta's own metadata."""
    report = task_files.run(rows, _writing(tables.path(table), keys))
    return [file for _, file in task_files.files(report).get("", ())]


def _writing(root: str, keys: Sequence[str]) -> Task:
    """The task: its rows -> files of about ROWS_PER_FILE rows, in the order of the rows."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        rest = iter(batches)
        for first in rest:
            with FileWriter(root, with_statistics=keys) as writer:
                size = 0
                for batch in itertools.chain([first], rest):
                    writer.add(pa.Table.from_batches([batch]))
                    size += batch.num_rows
                    if size >= tables.ROWS_PER_FILE:
                        break
                yield from task_files.reported("", writer.written())

    return run


def replace_days(spark: SparkSession, rows: DataFrame, table: str, days: Sequence[str], base: int) -> int:
    """Replace the rows of those bucket days in version `base` of the table; returns the new version.

    Every run leaves a file or two; now and then they are joined.
    """
    if duckdb_reader.version(table) != base:  # what an unpublished run left on top must not stay
        DeltaTable(tables.path(table)).restore(base)
    where = in_days(days, BUCKET_DAY)
    replace_where(rows.where(where), table, where)
    most = MANY_FILES + duckdb_reader.row_count(table) // tables.ROWS_PER_FILE
    if len(DeltaTable(tables.path(table)).file_uris()) > most:
        spark.sql(f"OPTIMIZE {tables.by_path(table)}")
    return duckdb_reader.version(table)
