"""The rows that a suite is held to: of a table at its exact version, or counted.

Relation --> frames of pandas through DuckDB and delta-rs, or a Spark DataFrame where there are too many rows.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

DUCKDB = Dialect.DUCKDB
AT_ONCE = 500_000
"""Rows that an audit has in memory at once."""
WRITTEN_AT_ONCE = 100_000
PART = "audited_part"
COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True)
class Stored:
    """Rows of a table at a version (None: the newest). `where`: a predicate that both dialects know.

    files: addresses of some of the version's files, whose rows alone are meant; None: all.
    """

    table: str
    version: int | None = None
    where: str = "TRUE"
    files: tuple[str, ...] | None = None

    def frames(self, suite: Suite) -> "Iterator[pd.DataFrame] | None":
        """The rows in frames of about AT_ONCE at most, in which those are together that the suite judges together.

        None where there are more, and only the whole table can be judged.
        """
        source = self._dataset()
        con = _database().cursor()
        con.register("source", source)
        [(rows,)] = con.execute(f"SELECT count(*) FROM source WHERE {self.where}").fetchall()
        wanted = _listed(suite.columns, source.schema, DUCKDB)
        if rows > AT_ONCE and suite.together is None:
            return None
        if rows > AT_ONCE and suite.together:
            parts = rows // AT_ONCE + 1
            part = f"hash({listed(suite.together, DUCKDB)}) % {parts:d} AS {PART}"
            return _apart(con, f"SELECT {wanted}, {part} FROM source WHERE {self.where}", parts)
        return _in_order(con, f"SELECT {wanted} FROM source WHERE {self.where}")

    def rows(self, spark: "SparkSession", suite: Suite) -> "DataFrame":
        wanted = _listed(suite.columns, self._dataset().schema, Dialect.SPARK)
        if self.files is not None:
            return spark.sql(
                f"SELECT {wanted} FROM {{files}} WHERE {self.where}", files=spark.read.parquet(*self.files)
            )
        version = duckdb_reader.version(self.table) if self.version is None else self.version
        source = f"{tables.by_path(self.table)} VERSION AS OF {version:d}"
        return spark.sql(f"SELECT {wanted} FROM {source} WHERE {self.where}")

    def _dataset(self) -> ds.Dataset:
        whole = duckdb_reader.dataset((self.table, self.version))
        return whole if self.files is None else ds.dataset(list(self.files), schema=whole.schema, format="parquet")


def _in_order(con: duckdb.DuckDBPyConnection, query: str) -> "Iterator[pd.DataFrame]":
    """The rows of a query, a frame at a time; at least one, and one alone for AT_ONCE rows, whatever their files."""
    reader = con.sql(query).to_arrow_reader(min(AT_ONCE, WRITTEN_AT_ONCE))
    batches = [*_about(AT_ONCE, reader)]
    yield as_frame(pa.Table.from_batches(batches, reader.schema))
    while batches := [*_about(AT_ONCE, reader)]:
        yield as_frame(pa.Table.from_batches(batches))


def _about(rows: int, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """The next batches, until they have so many rows; fewer at the end."""
    while rows > 0 and (batch := next(reader, None)) is not None:
        rows -= batch.num_rows
        yield batch


def _apart(con: duckdb.DuckDBPyConnection, query: str, parts: int) -> "Iterator[pd.DataFrame]":
    """The rows of a query by their PART: through files, as reading all rows once for each part is quadratic."""
    settings().tmp_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="audit-", dir=settings().tmp_dir) as folder:
        files = [Path(folder, f"{part}.arrow") for part in range(parts)]
        reader = con.sql(query).to_arrow_reader(WRITTEN_AT_ONCE)
        shape = reader.schema.remove(reader.schema.get_field_index(PART))
        with ExitStack() as opened:
            writers = [opened.enter_context(pa.ipc.new_file(file, shape, options=COMPRESSED)) for file in files]
            for batch in reader:
                for part, writer in enumerate(writers):
                    writer.write(batch.filter(pc.equal(batch[PART], part)).select(shape.names))
        for file in files:
            with pa.memory_map(str(file)) as mapped:
                yield as_frame(pa.ipc.open_file(mapped).read_all())


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all suites, each with a cursor of its own: to open one takes longer than most of their queries."""
    return duckdb_reader.connect({})


def _listed(columns: Iterable[str], schema: pa.Schema, dialect: Dialect) -> str:
    """Bytes as hexadecimal text, which Great Expectations can compare and show."""
    quoted = ((quote(name, dialect), schema.field(name).type) for name in columns)
    return ", ".join(f"hex({name}) AS {name}" if pa.types.is_binary(kind) else name for name, kind in quoted)


@dataclass(frozen=True)
class Counted:
    """A few rows that were counted elsewhere."""

    count: Callable[[], pa.Table]

    def frames(self, suite: Suite) -> "Iterator[pd.DataFrame]":
        return iter([as_frame(self.count().select(list(suite.columns)))])

    def rows(self, spark: "SparkSession", suite: Suite) -> "DataFrame":
        [frame] = self.frames(suite)
        return spark.createDataFrame(frame)


Relation = Stored | Counted
"""A suite's columns of rows: as `frames` in memory (None where they would not fit), or in Spark.

Both methods raise NoTable where the table or its version is gone.
"""


def as_frame(table: pa.Table) -> "pd.DataFrame":
    """A frame in which integers and booleans stay what they are beside nulls: as floats, keys past 2**53 may merge.

    Without nulls they are NumPy's, which Great Expectations compares column by column and not value by value.
    """
    import pandas as pd

    exact = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
    columns = {
        name: values.to_pandas(types_mapper=exact.get if values.null_count else None)
        for name, values in zip(table.column_names, table.columns, strict=True)
    }
    return pd.DataFrame(columns, copy=False)
