"""The long way for large micro-batches and for catch-up: the pass on Spark's workers, which write the files themselves.

records -> mapInArrow(land?, decode, drop duplicates, partials) -> data files of master.log and speed.partials that no
version names yet, and a report for the driver. Records come from Kafka, once, through the JVM; landed ones are read
from the log's files by the workers. No row goes back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs import contracts, tables
from spark_jobs.decode import decode
from spark_jobs.files import WRITTEN, FileWriter, Written
from spark_jobs.landed import Batches, Landed, Reader
from spark_jobs.speed.compute import NOT_SETTLED, WORKING, Settled, found_out, rows_of, stored, working_schema
from spark_jobs.speed.hot import OPEN, SPAN
from spark_jobs.speed.land import stamped
from spark_jobs.view import View

FILE_ROW = "__file__"
"""Transient: a file that a task has written."""
RECORDS_ROW = "__records__"
"""Transient: how many records a task was given."""
REPORT = pa.schema(
    [
        ("view", pa.string()),
        ("lsn", pa.int64()),
        ("control", tables.CONTROL),
        *WORKING,
        ("file", WRITTEN),
        ("size", pa.int64()),
    ]
)


Records = DataFrame | Landed


@dataclass(frozen=True)
class Passed:
    """What the tasks of a pass did. `rows`: their control rows, with the working columns."""

    records: int
    rows: pa.Table
    landed: list[Written] = field(default_factory=list)
    partials: list[Written] = field(default_factory=list)


def pass_over(
    records: Records,
    views: Sequence[View],
    settled: Settled = NOT_SETTLED,
    landed_on: date | None = None,
) -> Passed:
    """Write the partials of `records` (columns of tables.RECORD); with `landed_on`, the records too."""
    log, partials = tables.path(tables.MASTER_LOG), tables.path(tables.SPEED_PARTIALS)
    frame, read = records.tasks() if isinstance(records, Landed) else (records.select(tables.RECORD.names), iter)
    task = _task(read, list(views), settled, landed_on, (log, partials))
    report = frame.mapInArrow(task, from_arrow_schema(REPORT, prefer_timestamp_ntz=False)).toArrow()
    is_file, is_count = (pc.equal(report["view"], kind) for kind in (FILE_ROW, RECORDS_ROW))
    files = [Written(**one) for one in report.filter(is_file)["file"].to_pylist()]
    return Passed(
        records=pc.sum(report.filter(is_count)["size"]).as_py() or 0,
        rows=report.filter(pc.invert(pc.or_(is_file, is_count))).drop_columns(["file", "size"]),
        landed=[one for one in files if one.root == log],
        partials=[one for one in files if one.root == partials],
    )


def _task(
    read: Reader,
    views: list[View],
    settled: Settled,
    landed_on: date | None,
    roots: tuple[str, str],
) -> Callable[[Batches], Batches]:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        known, schema, count = contracts.load(), working_schema(views), 0
        with ExitStack() as opened:
            log = opened.enter_context(FileWriter(roots[0], ("landed_on", landed_on)))
            partials = opened.enter_context(FileWriter(roots[1], (SPAN, OPEN)))
            for batch in read(batches):
                records = pa.Table.from_batches([batch]).cast(tables.RECORD)
                count += records.num_rows
                if landed_on is not None:
                    log.add(stamped(records, landed_on))
                rows = rows_of(decode(records, known), views, settled, schema)
                partials.add(stored(rows, settled))
                yield from _reported(rows)
            files = [*log.written(), *partials.written()]
        yield from _report(view=FILE_ROW, file=files)
        yield from _report(view=RECORDS_ROW, size=[count])

    return run


def _reported(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """The control rows of a pass."""
    found = found_out(rows)
    absent = {one.name: pa.nulls(found.num_rows, one.type) for one in REPORT if one.name not in found.column_names}
    columns = [absent[name] if name in absent else found[name] for name in REPORT.names]
    yield from pa.table(columns, schema=REPORT).to_batches()


def _report(view: str, **columns: Sequence[object]) -> Iterator[pa.RecordBatch]:
    [(name, values)] = columns.items()
    rows = [{"view": view, name: one.as_dict() if isinstance(one, Written) else one} for one in values]
    yield from pa.Table.from_pylist(rows, schema=REPORT).to_batches()
