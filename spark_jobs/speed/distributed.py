"""Large micro-batches and catch-up: the steps of `partials_step` on Spark's workers, which write the files themselves.

records -> take: mapInArrow(land?, decode) -> facts on disk, for as long as the pass lasts
facts + verdict -> derive: mapInArrow(drop duplicates, views) -> data files of speed.partials that no version names yet

Between the two the driver says which facts are duplicates: a task sees only its own. Records come from Kafka, once,
through the JVM; landed ones are read from the log's files by the workers. No row goes back but a report's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.speed import partials_table, staged_facts
from spark_jobs.speed.land import stamped
from spark_jobs.speed.partials_step import Controls, Derived
from spark_jobs.speed.partials_table import OPEN, SPAN
from spark_jobs.speed.pass_rows import FIXED, found_rows, laid_out, partial_rows, partials_schema, views_over
from spark_jobs.speed.staged_facts import StagedFactsWriter
from spark_jobs.storage import data_files, tables, task_files
from spark_jobs.storage.data_files import FileWriter, Written
from spark_jobs.storage.log_reader import LogRecords, Reader
from spark_jobs.storage.side_inputs import SideInputs
from spark_jobs.storage.task_files import Batches, Task

FAILURE_ROW = "__failed__"
"""A view whose pass failed in a task; the driver sets it aside and writes nothing of it."""
RECORDS_ROW = "__records__"
"""How many records a task got."""
REPORT = pa.schema([*task_files.REPORT, *FIXED, ("size", pa.int64())])
"""What the driver is told: files, the control rows of rejected records, and these two kinds."""

Records = DataFrame | LogRecords
Facts = Mapping[str, pa.Table]


@dataclass(frozen=True)
class StagedBatch:
    """Records whose facts the workers have put on disk (a `partials_step.Batch`).

    records: how many; rejects: control rows; landed: files of the log; facts: files of facts.
    """

    spark: SparkSession
    records: int
    rejects: pa.Table
    landed: list[Written]
    facts: list[Written]

    def ids(self) -> pa.Table:
        return staged_facts.ids(self.facts)

    def derive(self, views: Sequence[View], duplicates: pa.Table, side_inputs: Facts) -> Derived:
        if not self.facts:
            return Derived()
        addresses = [file.address for file in self.facts]
        task = _deriving(addresses, list(views), duplicates, side_inputs, tables.path(tables.SPEED_PARTIALS))
        report = task_files.run(task_files.shares(self.spark, len(addresses)), task, REPORT)
        failures = report.filter(pc.equal(report["view"], FAILURE_ROW))["control"].to_pylist()
        failed = {failure["view"]: failure["reason"] for failure in failures}
        return Derived(files=_files(report), rejects=_rejects(report), failed=failed)

    def undo(self, derived: Derived) -> None:
        data_files.discard(derived.files)

    def commit(self, derived: Derived, controls: Controls, control_rows: Iterable[pa.Table]) -> None:
        partials_table.commit(derived.files, controls, control_rows)

    def close(self, side_inputs: SideInputs) -> None:
        data_files.discard(self.facts)


def take(records: Records, history: SchemaHistory, landed_on: date | None = None) -> StagedBatch:
    """Decode `records` (columns of row_types.RECORD); with `landed_on`, also write them to the log's files."""
    frame, read = records.tasks() if isinstance(records, LogRecords) else (records.select(row_types.RECORD.names), iter)
    log, facts = tables.path(tables.MASTER_LOG), staged_facts.root()
    report = task_files.run(frame, _taking(read, history, landed_on, log, facts), REPORT)
    sizes = report.filter(pc.equal(report["view"], RECORDS_ROW))["size"]
    written = _files(report)
    return StagedBatch(
        spark=frame.sparkSession,
        records=pc.sum(sizes).as_py() or 0,
        rejects=_rejects(report),
        landed=[file for file in written if file.root == log],
        facts=[file for file in written if file.root == facts],
    )


def _taking(read: Reader, history: SchemaHistory, landed_on: date | None, log_root: str, facts_root: str) -> Task:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        count = 0
        with ExitStack() as opened:
            log = opened.enter_context(FileWriter(log_root, ("landed_on", landed_on)))
            facts = opened.enter_context(StagedFactsWriter(facts_root))
            for batch in read(batches):
                records = pa.Table.from_batches([batch]).cast(row_types.RECORD)
                count += records.num_rows
                if landed_on is not None:
                    log.add(stamped(records, landed_on))
                decoded = decode_logged(records, history)
                facts.add(decoded.facts)
                yield from _reported(found_rows(row_types.REJECT_ROW, decoded.rejects))
            files = [*log.written(), *facts.written()]
        yield from _files_reported(files)
        yield from _reported(pa.table({"view": [RECORDS_ROW], "size": [count]}))

    return run


def _deriving(addresses: Sequence[str], views: list[View], duplicates: pa.Table, side_inputs: Facts, root: str) -> Task:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        schema = partials_schema(views)
        with FileWriter(root, (SPAN, OPEN)) as partials:
            for number in task_files.numbers(batches):
                for facts in staged_facts.portions(addresses[number]):
                    passed = views_over(facts, views, duplicates, side_inputs)
                    for rows in partial_rows(passed, schema):
                        partials.add(rows)
                    yield from _reported(found_rows(row_types.REJECT_ROW, passed.rejects))
                    yield from _reported(_failure_rows(passed.failed))
            files = partials.written()
        yield from _files_reported(files)

    return run


def _files_reported(files: Iterable[Written]) -> Iterator[pa.RecordBatch]:
    for batch in task_files.reported("", files):
        yield from _reported(pa.Table.from_batches([batch]))


def _failure_rows(failed: dict[str, str]) -> pa.Table:
    control = [{"view": column, "reason": error} for column, error in failed.items()]
    return pa.table({"view": pa.repeat(FAILURE_ROW, len(control)), "control": pa.array(control, row_types.CONTROL)})


def _reported(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from laid_out(rows, REPORT).combine_chunks().to_batches()


def _files(report: pa.Table) -> list[Written]:
    return [file for _, file in task_files.files(report).get("", ())]


def _rejects(report: pa.Table) -> pa.Table:
    return report.filter(pc.equal(report["view"], row_types.REJECT_ROW)).select(FIXED.names)
