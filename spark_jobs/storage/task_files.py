"""Work that Spark's tasks do on files: a task writes data files itself, and tells the driver which, in a report.

rows, or shares of the work -> mapInArrow(task) -> files that no version names yet; rows of REPORT to the driver.
The driver makes the files part of a table by one commit (`data_files.commit`), or discards them.
"""

import gc
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING, Any
from zipimport import zipimporter

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem

from spark_jobs.settings import settings
from spark_jobs.storage import tables
from spark_jobs.storage.data_files import ROW_GROUP, WRITTEN, FileWriter, Written

if TYPE_CHECKING:  # the log is read without Spark too
    from pyspark import StatusTracker
    from pyspark.sql import DataFrame, SparkSession

TELL_SECONDS = 15.0
SHARES_PER_CORE = 4
"""Shares of work whose sizes are only about equal: few enough to start, enough that no core waits long."""
ARROW_ROWS = 131_072
"""Rows per Arrow batch: large enough that the fixed cost of a pass is small, small enough for a worker's memory."""

PORTION = 250_000
"""Rows that a task has in memory at once, where rows of many tables are made together."""

Files = dict[str, list[tuple[int, Written]]]
"""Name -> the files of that name, and how many rows each has."""
Batches = Iterable[pa.RecordBatch]
Task = Callable[[Batches], Iterator[pa.RecordBatch]]

REPORT = pa.schema([("name", pa.string()), ("rows", pa.int64()), ("file", WRITTEN)])
"""`name`: what the file holds, as its task calls it. A task may report rows of other kinds beside, without a file."""


@contextmanager
def scratch(name: str) -> Iterator[str]:
    """An empty folder beside the tables, which the workers reach; it is removed afterwards."""
    root = f"{settings().warehouse}/{name}"
    fs, path = FileSystem.from_uri(root)
    fs.create_dir(path)
    fs.delete_dir_contents(path)  # left by a try that was killed
    try:
        yield root
    finally:
        fs.delete_dir(path)


def run(frame: "DataFrame", task: Task, schema: pa.Schema = REPORT) -> pa.Table:
    """Run the tasks; returns what they report, in `schema`: REPORT, or REPORT with more columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return frame.mapInArrow(_unburdened(task), from_arrow_schema(schema, prefer_timestamp_ntz=False)).toArrow()


def _unburdened(task: Task) -> Task:
    """The task, without two costs that Spark's workers pay for each.

    Before a task a worker forgets what it knows of the places that modules come from. Those of PySpark are folders in
    zip files, a list of a thousand names for each, which Python reads again at once. After a task it searches all its
    objects for garbage, and nearly all of them belong to modules.
    """

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for place, importer in [*sys.path_importer_cache.items()]:
            if isinstance(importer, zipimporter):
                del sys.path_importer_cache[place]
        yield from task(batches)
        _exempt_what_is_loaded()

    return run


@cache
def _exempt_what_is_loaded() -> None:
    """Let the garbage collector pass over all objects there are; once per process, after a task that loaded modules."""
    gc.freeze()


@contextmanager
def watched(spark: "SparkSession", tell: Callable[[int, int], None]) -> Iterator[None]:
    """Tell every TELL_SECONDS how many of the tasks begun inside are done, and of how many.

    What `tell` raises ends the tasks, and is raised here.
    """
    context, group = spark.sparkContext, f"watched-{time.monotonic_ns()}"
    ended, failed = threading.Event(), list[Exception]()
    context.setJobGroup(group, group)

    def watch() -> None:
        while not ended.wait(TELL_SECONDS):
            try:
                tell(*_tasks(context.statusTracker(), group))
            except Exception as error:
                failed.append(error)
                context.cancelJobGroup(group)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        if failed:
            raise failed[0]


def _tasks(tracker: "StatusTracker", group: str) -> tuple[int, int]:
    """Tasks of the group that are done, and all that were begun."""
    jobs = [job for number in tracker.getJobIdsForGroup(group) if (job := tracker.getJobInfo(number)) is not None]
    numbers = (number for job in jobs for number in job.stageIds)
    stages = [stage for number in numbers if (stage := tracker.getStageInfo(number)) is not None]
    return sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)


def shares(spark: "SparkSession", count: int) -> "DataFrame":
    """A frame with a partition for each share of the work; a task asks `numbers` for its own."""
    return spark.range(0, count, 1, count)


def numbers(batches: Batches) -> Iterator[int]:
    """The shares that are this task's."""
    for batch in batches:
        yield from batch["id"].to_pylist()


def write(name: str, root: str, rows: pa.Table, row_group: int | None = None) -> Iterator[pa.RecordBatch]:
    """Write one file of the table at `root`, and report it; nothing where there are no rows."""
    with FileWriter(root, row_group=row_group) as writer:
        for first in range(0, rows.num_rows, ARROW_ROWS):
            writer.add(rows.slice(first, ARROW_ROWS))
        yield from reported(name, writer.written(), rows.num_rows)


def write_in_order(
    name: str, root: str, batches: Batches, key: str | None, with_statistics: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Write rows that come in the order of `key` to files of about ROWS_PER_FILE rows, and report them.

    A new file begins only where the key changes: no two of them overlap, and a look for one key opens one file.
    """
    file, size, last = FileWriter(root, with_statistics=with_statistics, row_group=ROW_GROUP), 0, None
    for batch in batches:
        if size >= tables.ROWS_PER_FILE and key is not None:
            same = _leading(batch[key], last)
            file.add(pa.Table.from_batches([batch.slice(0, same)]))
            size, batch = size + same, batch.slice(same)
            if batch.num_rows:
                yield from reported(name, file.written(), size)
                file, size = FileWriter(root, with_statistics=with_statistics, row_group=ROW_GROUP), 0
        if batch.num_rows:
            file.add(pa.Table.from_batches([batch]))
            size, last = size + batch.num_rows, batch[key][-1] if key is not None else None
    yield from reported(name, file.written(), size)


def _leading(values: pa.Array, value: pa.Scalar) -> int:
    """How many of the first values are `value`."""
    other = pc.fill_null(pc.not_equal(values, value), True) if value.is_valid else values.is_valid()
    first: int = pc.index(other, True).as_py()
    return len(values) if first < 0 else first


class Writers(ExitStack):
    """The files that a task writes beside each other, one per name."""

    def __init__(self) -> None:
        super().__init__()
        self._files, self._rows = dict[str, FileWriter](), Counter[str]()

    def add(self, name: str, root: str, rows: pa.Table, **how: Any) -> None:
        """Append rows to the file of that name, of the table at `root`; `how`: as FileWriter has it."""
        if rows.num_rows:
            if name not in self._files:
                self._files[name] = self.enter_context(FileWriter(root, **how))
            self._files[name].add(rows)
            self._rows[name] += rows.num_rows

    def reported(self) -> Iterator[dict[str, Any]]:
        """Close the files, and give the values of REPORT for each."""
        for name, file in self._files.items():
            yield from ({"name": name, "rows": self._rows[name], "file": asdict(one)} for one in file.written())

    def report(self) -> Iterator[pa.RecordBatch]:
        """Close the files: the rows of REPORT."""
        yield from pa.Table.from_pylist(list(self.reported()), schema=REPORT).to_batches()


def reported(
    name: str, files: Iterable[Written], rows: int | None = None, schema: pa.Schema = REPORT
) -> Iterator[pa.RecordBatch]:
    """The rows of REPORT, or of a wider `schema`, for these files; `rows`: how many are in each."""
    told = [{"name": name, "rows": rows, "file": asdict(file)} for file in files]
    yield from pa.Table.from_pylist(told, schema=schema).to_batches()


def files(report: pa.Table) -> Files:
    """The files that were written."""
    written: Files = {}
    for row in report.select(REPORT.names).to_pylist():
        if row["file"] is not None:
            written.setdefault(row["name"], []).append((row["rows"], Written(**row["file"])))
    return written
