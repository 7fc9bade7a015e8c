"""The rows that a suite checks, in the engine that suits their number.

table, version, predicate -> a pandas frame through DuckDB and delta-rs, or a Spark DataFrame.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.storage import duckdb_reader, tables

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Stored:
    """Rows of a table at a version (None: the newest). `where`: a predicate that both dialects know."""

    table: str
    version: int | None = None
    where: str = "TRUE"

    def frame(self, columns: Iterable[str]) -> "pd.DataFrame | None":
        source = self._dataset()
        with duckdb_reader.connect({"source": source}) as con:
            [(rows,)] = con.execute(f"SELECT count(*) FROM source WHERE {self.where}").fetchall()
            if rows > tables.SMALL:
                return None
            wanted = _listed(columns, source.schema, Dialect.DUCKDB)
            return as_frame(con.sql(f"SELECT {wanted} FROM source WHERE {self.where}").to_arrow_table())

    def rows(self, spark: "SparkSession", columns: Iterable[str]) -> "DataFrame":
        wanted = _listed(columns, self._dataset().schema, Dialect.SPARK)
        version = duckdb_reader.version(self.table) if self.version is None else self.version
        source = f"{tables.by_path(self.table)} VERSION AS OF {version:d}"
        return spark.sql(f"SELECT {wanted} FROM {source} WHERE {self.where}")

    def _dataset(self) -> ds.Dataset:
        return duckdb_reader.dataset((self.table, self.version))


def _listed(columns: Iterable[str], schema: pa.Schema, dialect: Dialect) -> str:
    """Bytes as hexadecimal text, which Great Expectations can compare and show."""
    quoted = ((quote(name, dialect), schema.field(name).type) for name in columns)
    return ", ".join(f"hex({name}) AS {name}" if pa.types.is_binary(kind) else name for name, kind in quoted)


@dataclass(frozen=True)
class Counted:
    """A few rows that were counted elsewhere."""

    count: Callable[[], pa.Table]

    def frame(self, columns: Iterable[str]) -> "pd.DataFrame":
        return as_frame(self.count().select(list(columns)))

    def rows(self, spark: "SparkSession", columns: Iterable[str]) -> "DataFrame":
        return spark.createDataFrame(self.frame(columns))


Relation = Stored | Counted
"""Columns of rows: as a `frame` in memory (None where it would not fit), or in Spark.

Both methods raise NoTable where the table or its version is gone.
"""


def as_frame(table: pa.Table) -> "pd.DataFrame":
    """A frame in which integers and booleans stay what they are beside nulls: as floats, keys past 2**53 may merge."""
    import pandas as pd

    exact = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = table.to_pandas(types_mapper=exact.get)
    return frame
