"""Large micro-batches and catch-up: the steps of `partials_step` on Spark's workers, which write the files themselves.

records -> take: mapInArrow(land?, decode) -> facts on disk, for as long as the pass lasts
facts + verdict -> derive: mapInArrow(drop duplicates, views) -> data files of speed.partials that no version names yet

Between the two the driver says which facts are duplicates: a task sees only its own. Records come from Kafka, once,
through the JVM; landed ones are read from the log's files by the workers. No row goes back but a report's.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.speed import pass_rows, staged_facts
from spark_jobs.speed.kind_files import FEW, KindFiles
from spark_jobs.speed.land import stamped
from spark_jobs.speed.partials_step import Derived
from spark_jobs.speed.partials_table import OPEN, SPAN
from spark_jobs.speed.pass_rows import FIXED, laid_out, record_rows
from spark_jobs.speed.staged_facts import StagedFactsWriter
from spark_jobs.speed.tiers import began
from spark_jobs.storage import data_files, tables, task_files
from spark_jobs.storage.data_files import FileWriter, Written
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.log_reader import Divided, Reader
from spark_jobs.storage.side_inputs import SideInputs
from spark_jobs.storage.task_files import Batches, Task, reported

FAILURE_ROW = "__failed__"
"""A view whose pass failed in a task; the driver sets it aside and writes nothing of it."""
REPORT = pa.schema([*task_files.REPORT, *FIXED])
"""What the driver is told: files, the control rows of rejected records, and failures."""
LOG_FILES, FACTS, IDS, PARTIALS = "log", "facts", "ids", "partials"
"""Files of the report: of the log, with the number of their records; between the halves; of speed.partials."""

Facts = Mapping[str, pa.Table]


@dataclass(frozen=True)
class StagedBatch:
    """Records whose facts the workers have put on disk (a `partials_step.Batch`).

    rejects: control rows; landed: files of the log; records: how many they hold; the others are between the halves.
    """

    spark: SparkSession
    fence: Fence
    rejects: pa.Table
    landed: list[Written]
    records: int
    facts: list[Written]
    ids_of_facts: list[Written]

    def ids(self) -> pa.Table:
        return staged_facts.ids(self.ids_of_facts)

    def derive(self, views: Sequence[View], duplicates: pa.Table, side_inputs: Facts) -> Derived:
        if not self.facts:
            return Derived()
        task = _deriving(self.facts, views, duplicates, side_inputs, tables.path(tables.SPEED_PARTIALS))
        report = task_files.run(task_files.shares(self.spark, len(self.facts)), task, REPORT)
        failures = _of_kind(report, FAILURE_ROW)["control"].to_pylist()
        failed = {failure["view"]: failure["reason"] for failure in failures}
        files = [file for _, file in task_files.files(report).get(PARTIALS, ())]
        return Derived(files=files, rejects=_of_kind(report, row_types.REJECT_ROW), failed=failed)

    def commit(self, derived: Derived, control_rows: Sequence[pa.Table]) -> None:
        root = tables.path(tables.SPEED_PARTIALS)
        data_files.commit_beside(derived.files, control_rows, root, (SPAN, OPEN), self.fence.committing)

    def close(self, side_inputs: SideInputs) -> None:
        data_files.discard([*self.facts, *self.ids_of_facts])


def take(
    records: DataFrame | Divided, history: SchemaHistory, fence: Fence, landed_on: date | None = None
) -> StagedBatch:
    """Decode `records` (columns of row_types.RECORD); with `landed_on`, also write them to the log's files."""
    frame, read = (records, iter) if isinstance(records, DataFrame) else records.tasks()
    task = _taking(read, history, landed_on, tables.path(tables.MASTER_LOG), staged_facts.root())
    report = task_files.run(frame, task, REPORT)
    files = task_files.files(report)
    log_files = files.get(LOG_FILES, [])
    return StagedBatch(
        spark=frame.sparkSession,
        fence=fence,
        rejects=_of_kind(report, row_types.REJECT_ROW),
        landed=[file for _, file in log_files],
        records=sum(count for count, _ in log_files),
        facts=[file for _, file in files.get(FACTS, ())],
        ids_of_facts=[file for _, file in files.get(IDS, ())],
    )


def _taking(read: Reader, history: SchemaHistory, landed_on: date | None, log_root: str, facts_root: str) -> Task:
    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        count = 0
        with FileWriter(log_root, ("landed_on", landed_on)) as log, StagedFactsWriter(facts_root) as facts:
            for batch in read(batches):
                records = pa.Table.from_batches([batch]).cast(row_types.RECORD)
                count += records.num_rows
                if landed_on is not None:
                    log.add(stamped(records, landed_on))
                decoded = decode_logged(records, history)
                facts.add(decoded.facts)
                yield from _in_report(record_rows(row_types.REJECT_ROW, decoded.rejects))
            yield from reported(LOG_FILES, log.written(), count, REPORT)
            for name, written in zip((FACTS, IDS), facts.written(), strict=True):
                yield from reported(name, written, schema=REPORT)

    return run


def _deriving(
    files: Sequence[Written], views: Sequence[View], duplicates: pa.Table, side_inputs: Facts, root: str
) -> Task:
    span = began(time.time())

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        partials = KindFiles(root, span, few=FEW)
        for number in task_files.numbers(batches):
            for facts in staged_facts.portions(files[number].address):
                passed = pass_rows.views_over(facts, views, duplicates, side_inputs)
                for view, rows in pass_rows.partial_rows(passed):
                    partials.add(view, rows)
                failures = ((0, {"view": view, "reason": reason}) for view, reason in passed.failed.items())
                yield from _in_report(record_rows(row_types.REJECT_ROW, passed.rejects))
                yield from _in_report(pass_rows.control_rows(FAILURE_ROW, failures))
        yield from reported(PARTIALS, partials.written(), schema=REPORT)

    return run


def _in_report(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    yield from laid_out(rows, REPORT).combine_chunks().to_batches()


def _of_kind(report: pa.Table, kind: str) -> pa.Table:
    """The control rows of one kind in a report."""
    return report.filter(pc.equal(report["view"], kind)).select(FIXED.names)
