"""Read the master log from its files: its records, and what it says of how they are read.

ranges of lsns -> groups of files -> (a Spark task each) -> Arrow batches with the columns of row_types.RECORD.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem

from spark_jobs.contracts import revision_rows, row_types, schema_history
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, lsn_ranges, tables
from spark_jobs.storage.data_files import files_within
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.lsn_ranges import Range
from spark_jobs.storage.task_files import ARROW_ROWS, Batches, numbers, shares

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Reader = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What a task gets -> the records that it has to look at."""


class Divided(Protocol):
    """Records that tasks read themselves."""

    def tasks(self) -> "tuple[DataFrame, Reader]":
        """A row, and a partition, per task; and how a task gets its records."""


@dataclass(frozen=True)
class LogRecords:
    """The records of some lsns, as Divided. `ranges`: both ends included."""

    spark: "SparkSession"
    ranges: tuple[tuple[int, int], ...]

    def tasks(self) -> "tuple[DataFrame, Reader]":
        root, ranges, groups = tables.path(tables.MASTER_LOG), self.ranges, self._groups()

        def read(batches: Batches) -> Iterator[pa.RecordBatch]:
            fs, base = FileSystem.from_uri(root)
            wanted = (pc.field("kind") == row_types.RECORD_ROW) & lsn_ranges.within(ranges)
            for number in numbers(batches):
                paths = [f"{base}/{path}" for path in groups[number]]
                source = ds.dataset(paths, schema=row_types.LOG, format="parquet", filesystem=fs)
                yield from in_portions(source, ARROW_ROWS, wanted, row_types.RECORD.names)

        return shares(self.spark, len(groups)), read

    def _groups(self) -> list[list[str]]:
        """The files that may hold the records, in about equal shares: one per core, or more if there are many rows."""
        files = files_within(DeltaTable(tables.path(tables.MASTER_LOG)), {"lsn": self.ranges})
        files = files.sort_by([("num_records", "descending")])
        rows = pc.sum(files["num_records"]).as_py() or 0
        shares = min(max(settings().cores, rows // tables.ROWS_PER_FILE + 1), max(files.num_rows, 1))
        paths = files["path"].to_pylist()
        return [paths[share::shares] for share in range(shares)]


def records(where: ds.Expression, lsns: Iterable[Range]) -> pa.Table:
    """The landed records in ranges of lsns that match, with the columns of RECORD."""
    return pa.concat_tables([row_types.RECORD.empty_table(), *portions(where, lsns)])


def portions(where: ds.Expression, lsns: Iterable[Range], rows_at_once: int = ARROW_ROWS) -> Iterator[pa.Table]:
    """The landed records in ranges of lsns that match, some at a time; the log's other files cost nothing."""
    ranges, only = [*lsns], row_types.RECORD_ROW
    files = duckdb_reader.within(tables.MASTER_LOG, {"lsn": ranges, "kind": [(only, only)]})
    return _portions(files, where & (ds.field("kind") == only) & lsn_ranges.within(ranges), rows_at_once)


def quarantined(where: ds.Expression) -> Iterator[pa.Table]:
    """The quarantined records that match, some at a time."""
    return _portions(duckdb_reader.dataset(tables.QUARANTINE), where, ARROW_ROWS)


def _portions(rows: ds.Dataset, where: ds.Expression, rows_at_once: int) -> Iterator[pa.Table]:
    for batch in in_portions(rows, rows_at_once, where, row_types.RECORD.names):
        if batch.num_rows:
            yield pa.Table.from_batches([batch]).cast(row_types.RECORD)


def read_schema_history() -> SchemaHistory:
    """The schemas and the revisions in the log. Raises ContractError where a schema file has changed since it came in
    force."""
    if not duckdb_reader.exists(tables.MASTER_LOG):
        return SchemaHistory()
    first, last = row_types.REVISION_ROW, row_types.SCHEMA_ROW
    files = duckdb_reader.within(tables.MASTER_LOG, {"kind": [(first, last)]})
    rows = files.to_table(["kind", *row_types.RECORD.names], ds.field("kind") >= first).to_pylist()
    of_kind = {kind: [row for row in rows if row["kind"] == kind] for kind in (first, last)}
    return replace(schema_history.from_rows(of_kind[last]), revisions=revision_rows.from_rows(of_kind[first]))
