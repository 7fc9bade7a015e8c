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

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from spark_jobs.storage import tables


@dataclass(frozen=True)
class Slice:
    """Facts with an lsn in (above, upto]; of these days (ISO dates), or of all where `days` is None."""

    upto: int
    above: int = 0
    days: tuple[str, ...] | None = None

    def sql(self) -> str:
        lsns = f"lsn <= {self.upto:d}" + (f" AND lsn > {self.above:d}" if self.above else "")
        return lsns if self.days is None else f"{lsns} AND {in_days(self.days)}"

    def can_hold(self) -> pc.Expression:
        """Whether a file can hold such facts, by its statistics; a file without statistics can."""
        condition = _reaches("lsn", self.above + 1, self.upto)
        if self.days:
            days = sorted(map(date.fromisoformat, self.days))
            condition = condition & _reaches("day", days[0], days[-1])
        return condition


def in_days(days: Iterable[str]) -> str:
    """Predicate on `day`; the days are ISO dates that the ledger holds."""
    listed = ", ".join(f"DATE '{day}'" for day in days)
    return f"day IN ({listed})" if listed else "FALSE"


def rows(
    spark: SparkSession, table: str, version: int | None = None, can_hold: pc.Expression | None = None
) -> DataFrame:
    """All rows of a version (None: the newest), or at least those of the files that `can_hold` some."""
    delta = DeltaTable(tables.path(table), version=version)
    schema = StructType.fromJson(json.loads(delta.schema().to_json()))
    files = pa.table(delta.get_add_actions(flatten=True))
    if can_hold is not None and files.num_rows:
        files = _with_statistics(files).filter(can_hold)
    paths = [f"{tables.path(table)}/{path}" for path in files["path"].to_pylist()]
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def relation(rows: DataFrame) -> str:
    """A name for the rows in SQL."""
    name = f"stored_{uuid.uuid4().hex}"
    rows.createOrReplaceTempView(name)
    return name


def facts_of(spark: SparkSession, event_types: Iterable[str], wanted: Slice) -> Mapping[str, str]:
    """Per event type a relation of the wanted facts."""
    known = {name: rows(spark, tables.facts(name), can_hold=wanted.can_hold()) for name in event_types}
    return {name: relation(facts.where(wanted.sql())) for name, facts in known.items()}


def _reaches(column: str, least: object, greatest: object) -> pc.Expression:
    low, high = pc.field(f"min.{column}"), pc.field(f"max.{column}")
    return low.is_null() | high.is_null() | ((low <= pc.scalar(greatest)) & (high >= pc.scalar(least)))


def _with_statistics(files: pa.Table) -> pa.Table:
    """Where no file has statistics of a column, its bounds are null."""
    kinds = {"lsn": pa.int64(), "day": pa.date32()}
    lacking = [(f"{bound}.{name}", kind) for name, kind in kinds.items() for bound in ("min", "max")]
    for name, kind in lacking:
        if name not in files.column_names:
            files = files.append_column(name, pa.nulls(files.num_rows, kind))
    return files
