"""Writing a version of a batch table, and knowing which version it is.

rows -> sorted -> one Delta commit -> version. A batch table has one writer: the active run.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs import tables, warehouse
from spark_jobs.settings import settings

BUCKET_DAY = "bucket_day"
MANY_FILES = 64


def create(spark: SparkSession, table: str, schema: pa.Schema) -> None:
    """Create a batch table where it does not exist.

    Delta refuses time travel past the two retention properties, so they are the longest promise; what is not needed
    any more is removed by `tidemark retention` alone.
    """
    if spark.catalog.tableExists(table):
        return
    types = from_arrow_schema(schema, prefer_timestamp_ntz=False)
    columns = ", ".join(f"`{field.name}` {field.dataType.simpleString()}" for field in types.fields)
    kept = f"interval {settings().history_days} days"
    spark.sql(
        f"CREATE TABLE {table} ({columns}) USING delta TBLPROPERTIES "
        f"('delta.deletedFileRetentionDuration' = '{kept}', 'delta.logRetentionDuration' = '{kept}')"
    )


def sorted_by(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Sorted in each file, so that a point query reads a small part of it."""
    return rows.sortWithinPartitions(*keys)


def by_bucket(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """In the order of bucket days: a day is in few files, and a file of a large table has few days."""
    return rows.repartition(BUCKET_DAY).sortWithinPartitions(BUCKET_DAY, *keys)


def append(rows: DataFrame, table: str) -> None:
    rows.write.format("delta").mode("append").save(tables.path(table))


def replace_where(rows: DataFrame, table: str, where: str) -> None:
    """Replace what matches by `rows`, all of which match.

    By the path, like every write here: by the table's name Delta makes it a CREATE OR REPLACE TABLE, which tries to
    alter Hive's copy of the schema each time.
    """
    rows.write.format("delta").mode("overwrite").option("replaceWhere", where).save(tables.path(table))


def overwrite(rows: DataFrame, table: str) -> int:
    """Replace all rows; returns the version."""
    rows.write.format("delta").mode("overwrite").save(tables.path(table))
    return version(table)


def replace_days(spark: SparkSession, rows: DataFrame, table: str, days: Sequence[str], base: int) -> int:
    """Replace the rows of those bucket days in version `base` of the table; returns the new version.

    Every run leaves a file or two; now and then they are made one.
    """
    if version(table) != base:  # what an unpublished run left on top must not stay
        spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {int(base)}")
    listed = ", ".join(f"DATE '{day}'" for day in days)
    where = f"{BUCKET_DAY} IN ({listed})"
    replace_where(rows.where(where), table, where)
    most = MANY_FILES + warehouse.row_count(table) // tables.ROWS_PER_FILE
    if len(DeltaTable(tables.path(table)).file_uris()) > most:
        spark.sql(f"OPTIMIZE {table}")
    return version(table)


def version(table: str) -> int:
    return int(DeltaTable(tables.path(table)).version())


def facts_relation(event_type: str, cut: int, where: str = "") -> str:
    """A relation of the facts of one type at the cut."""
    condition = f" AND {where}" if where else ""
    return f"(SELECT * FROM {tables.facts(event_type)} WHERE lsn <= {int(cut)}{condition})"


def facts_of(event_types: Sequence[str], cut: int, where: str = "") -> Mapping[str, str]:
    return {event_type: facts_relation(event_type, cut, where) for event_type in event_types}
