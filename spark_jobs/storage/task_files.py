"""Work that Spark's tasks do on files: a task writes data files itself, and tells the driver which, in a report.

rows, or shares of the work -> mapInArrow(task) -> files that no version names yet; rows of REPORT to the driver.
The driver makes the files part of a table by one commit (`data_files.commit`), or discards them.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_jobs.storage.data_files import WRITTEN, FileWriter, Written

if TYPE_CHECKING:  # the log is read without Spark too
    from pyspark.sql import DataFrame, SparkSession

ARROW_ROWS = 131_072
"""Rows per Arrow batch: large enough that the fixed cost of a pass is small, small enough for a worker's memory."""

Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]

REPORT = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("file", WRITTEN)])
"""`name`: what the file holds, as its task calls it. A task may report rows of other kinds beside, without a file."""


def run(frame: "DataFrame", task: Task, schema: pa.Schema = REPORT) -> pa.Table:
    """Run the tasks; returns what they report, in `schema`: REPORT, or REPORT with more columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(task, from_arrow_schema(schema, prefer_timestamp_ntz=False)).toArrow()


def shares(spark: "SparkSession", count: int) -> "DataFrame":
    """A frame with a partition for each share of the work; a task asks `numbers` for its own."""
    return spark.range(0, count, 1, count)


def numbers(batches: Batches) -> Iterator[int]:
    """The shares that are this task's."""
    for batch in batches:
        yield from batch["id"].to_pylist()


def write(name: str, root: str, rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Write one file of the table at `root`, and report it; nothing where there are no rows."""
    with FileWriter(root) as writer:
        for first in range(0, rows.num_rows, ARROW_ROWS):
            writer.add(rows.slice(first, ARROW_ROWS))
        yield from reported(name, writer.written(), rows.num_rows)


def reported(
    name: str, files: Iterable[Written], rows: int | None = None, schema: pa.Schema = REPORT
) -> Iterator[pa.RecordBatch]:
    """The rows of REPORT, or of a wider `schema`, for these files; `rows`: how many are in each."""
    told = [{"name": name, "rows": rows, "file": asdict(file)} for file in files]
    yield from pa.Table.from_pylist(told, schema=schema).to_batches()


def files(report: pa.Table) -> dict[str, list[tuple[int, Written]]]:
    """Name -> the rows and the file of each that was written."""
    written: dict[str, list[tuple[int, Written]]] = {}
    for row in report.select(REPORT.names).to_pylist():
        if row["file"] is not None:
            written.setdefault(row["name"], []).append((row["rows"], Written(**row["file"])))
    return written
