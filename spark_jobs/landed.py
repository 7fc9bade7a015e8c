"""Records of the master log for Spark's workers, who read them from its files themselves, past the JVM.

ranges of lsns -> groups of files -> (a task each) -> Arrow batches with the columns of tables.RECORD.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession

from spark_jobs import tables
from spark_jobs.settings import settings

ARROW_ROWS = 131_072
"""Records per Arrow batch: large enough that the fixed cost of a pass is small, small enough for a worker's memory."""

Batches = Iterable[pa.RecordBatch]
Reader = Callable[[Batches], Iterator[pa.RecordBatch]]
"""What a task is given -> the records that it has to look at."""


@dataclass(frozen=True)
class Landed:
    """The records of some lsns. `ranges`: both ends included."""

    spark: SparkSession
    ranges: tuple[tuple[int, int], ...]

    def tasks(self) -> tuple[DataFrame, Reader]:
        """A row, and a partition, per task; and how a task gets its records."""
        root, ranges, groups = tables.path(tables.MASTER_LOG), self.ranges, self._groups()

        def read(batches: Batches) -> Iterator[pa.RecordBatch]:
            fs, base = FileSystem.from_uri(root)
            wanted = (pc.field("kind") == tables.RECORD_ROW) & _within(ranges)
            for number in (number for batch in batches for number in batch["id"].to_pylist()):
                paths = [f"{base}/{path}" for path in groups[number]]
                source = ds.dataset(paths, schema=tables.LOG, format="parquet", filesystem=fs)
                yield from source.to_batches(columns=tables.RECORD.names, filter=wanted, batch_size=ARROW_ROWS)

        return self.spark.range(0, len(groups), 1, len(groups)), read

    def _groups(self) -> list[list[str]]:
        """Files that may hold the records, in about equal shares: one per core, more where that would be many rows."""
        files = pa.table(DeltaTable(tables.path(tables.MASTER_LOG)).get_add_actions(flatten=True))
        overlapping = [(pc.field("max.lsn") >= first) & (pc.field("min.lsn") <= last) for first, last in self.ranges]
        files = files.filter(reduce(or_, overlapping)).sort_by([("num_records", "descending")])
        rows = pc.sum(files["num_records"]).as_py() or 0
        shares = min(max(settings().cores, rows // tables.ROWS_PER_FILE + 1), max(files.num_rows, 1))
        paths = files["path"].to_pylist()
        return [paths[share::shares] for share in range(shares)]


def _within(ranges: Iterable[tuple[int, int]]) -> pc.Expression:
    return reduce(or_, [(pc.field("lsn") >= first) & (pc.field("lsn") <= last) for first, last in ranges])
