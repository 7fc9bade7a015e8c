"""Read the platform's tables in a batch job's Spark: the files of one version, as Parquet.

table, version -> delta-rs -> files that can hold the rows, by their statistics -> spark.read.parquet -> a relation.
A new JVM's first read of a Delta table takes 12 seconds of CPU time, and each further table a few jobs for its log.
This is right for the tables read here: no partitions, no deletion vectors, no renamed columns.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_jobs.storage import tables
from spark_jobs.storage.data_files import Bounds, files_within


@dataclass(frozen=True)
class Slice:
    """Facts with an lsn in (above, upto]; of these days (ISO dates), or of all where `days` is None."""

    upto: int
    above: int = 0
    days: tuple[str, ...] | None = None

    def sql(self) -> str:
        lsns = f"lsn <= {self.upto:d}" + (f" AND lsn > {self.above:d}" if self.above else "")
        return lsns if self.days is None else f"{lsns} AND {in_days(self.days)}"

    def bounds(self) -> Bounds:
        """Column -> the least and the greatest value of such facts."""
        days = sorted(map(date.fromisoformat, self.days or ()))
        return {"lsn": (self.above + 1, self.upto)} | ({"day": (days[0], days[-1])} if days else {})


def in_days(days: Iterable[str], column: str = "day") -> str:
    """Predicate on a column of days; the days are ISO dates that the ledger holds."""
    listed = ", ".join(f"DATE '{day}'" for day in days)
    return f"{column} IN ({listed})" if listed else "FALSE"


def rows(
    spark: SparkSession, table: str, version: int | None = None, bounds: Bounds = MappingProxyType({})
) -> DataFrame:
    """All rows of a version (None: the newest), or at least those of the files that reach into the `bounds`."""
    delta = DeltaTable(tables.path(table), version=version)
    schema = StructType.fromJson(json.loads(delta.schema().to_json()))
    paths = [f"{tables.path(table)}/{path}" for path in files_within(delta, bounds)["path"].to_pylist()]
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def relation(rows: DataFrame) -> str:
    """A name for the rows in SQL."""
    name = f"stored_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    return name


def facts_of(spark: SparkSession, event_types: Iterable[str], wanted: Slice) -> Mapping[str, str]:
    """Per event type a relation of the wanted facts."""
    known = {name: rows(spark, tables.facts(name), bounds=wanted.bounds()) for name in event_types}
    return {name: relation(facts.where(wanted.sql())) for name, facts in known.items()}
