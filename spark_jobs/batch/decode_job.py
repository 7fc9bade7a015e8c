"""Decode records of the master log in one pass: facts, rejects and duplicates.

master.log (the run's lsns) -> mapInArrow(decode) -> data files of facts.<type> and master.quarantine that no version
names yet, and the facts' identities -> those that repeat one (`identity_index`) -> files without them, files of
master.duplicates, and their outcomes.
The layers share `decode`; what differs is de-duplication.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.batch import identity_index
from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine.decode.assemble import Decoded
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.dedupe import divided
from spark_jobs.engine.record_outcomes import RECORD_OUTCOME, of_duplicates
from spark_jobs.settings import settings
from spark_jobs.storage import data_files, tables, task_files
from spark_jobs.storage.data_files import ROW_GROUP, Committing
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.log_reader import LogRecords, Reader
from spark_jobs.storage.lsn_ranges import Scope
from spark_jobs.storage.task_files import PORTION, SHARES_PER_CORE, Batches, Files, Task, Writers

COORDINATES = [name for name, _ in row_types.COORDINATES]
DUPLICATE = pa.schema([*row_types.COORDINATES, ("event_type", pa.string()), ("identity", pa.binary())])
QUARANTINED = pa.schema([*row_types.REJECT, ("state", pa.string())])
STATE = "quarantined"

IDENTITY_FILE = "identities"
"""The name of a staged file of identities; other files are named by their table."""

JudgedBy = tuple[SchemaHistory, int]
"""The schemas of the log, and the cut up to which they count."""


def decoded(spark: SparkSession, todo: Scope, judged_by: JudgedBy, folder: str, committing: Committing) -> Files:
    """The files that the records of the lsns to do become, by table. `folder`: for temporary files.

    The index of identities knows them when this is done.
    """
    frame, read = LogRecords(spark, tuple(todo.ranges())).tasks()
    files = _written(frame, _decoding(read, judged_by, folder))
    staged = {file.address: rows for rows, file in files.pop(IDENTITY_FILE, [])}
    types, losers = identity_index.losers(spark, staged, todo, folder, committing)
    return files | _rewritten(spark, files, types, losers) if losers else files


def fact_columns(contract: Contract) -> pa.Schema:
    """The columns of facts.<type>; Spark knows no binary of fixed size."""
    fields = [
        pa.field(f.name, pa.binary()) if pa.types.is_fixed_size_binary(f.type) else f for f in contract.fact_schema
    ]
    return pa.schema([*fields, ("day", pa.date32())])


def _written(frame: DataFrame, task: Task) -> Files:
    return task_files.files(task_files.run(frame, task))


def _decoding(read: Reader, judged_by: JudgedBy, folder: str) -> Task:
    roots = {contract.event_type: tables.path(tables.facts(contract.event_type)) for contract in project_contracts()}
    quarantine = tables.path(tables.QUARANTINE)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        with Writers() as writers:
            pending, size = list[Decoded](), 0
            for batch in read(batches):
                pending.append(decode_logged(pa.Table.from_batches([batch]).cast(row_types.RECORD), *judged_by))
                size += batch.num_rows
                if size >= PORTION:
                    add(writers, pending)
                    pending, size = [], 0
            add(writers, pending)
            yield from writers.report()

    def add(writers: Writers, pending: list[Decoded]) -> None:
        identities = []
        for event_type in dict.fromkeys(name for chunk in pending for name in chunk.facts):
            facts = pa.concat_tables([chunk.facts[event_type] for chunk in pending if event_type in chunk.facts])
            if event_type != RECORD_OUTCOME:
                identities.append(facts.select(identity_index.STAGED.names).cast(identity_index.STAGED))
            writers.add(tables.facts(event_type), roots[event_type], _in_time(facts, event_type))
        if pending:
            rejects = pa.concat_tables([chunk.rejects for chunk in pending])
            held = rejects.append_column("state", pa.repeat(STATE, rejects.num_rows)).cast(QUARANTINED)
            writers.add(tables.QUARANTINE, quarantine, held)
        if identities:
            in_order = pa.concat_tables(identities).sort_by("identity")
            writers.add(IDENTITY_FILE, folder, in_order, row_group=ROW_GROUP)

    return run


def _in_time(facts: pa.Table, event_type: str) -> pa.Table:
    """The facts with their day, in the order of time, so that statistics of row groups lead to a day's facts."""
    days = facts["occurred_at"].cast(pa.timestamp("us")).cast(pa.date32())
    columns = fact_columns(project_contracts().of(event_type))
    return facts.append_column("day", days).select(columns.names).cast(columns).sort_by("occurred_at")


def _rewritten(spark: SparkSession, files: Files, types: set[str], losers: list[str]) -> Files:
    """The facts again without the losers, these as duplicates, and their outcomes; the old files are deleted."""
    old = [(name, file) for name in (*types, RECORD_OUTCOME) for _, file in files.get(tables.facts(name), ())]
    shares = min(settings().cores * SHARES_PER_CORE, len(old))
    outcomes, duplicates = tables.path(tables.facts(RECORD_OUTCOME)), tables.path(tables.DUPLICATES)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        repeating = ds.dataset(losers, format="parquet")
        with Writers() as writers:
            for share in task_files.numbers(batches):
                for event_type, written in old[share::shares]:
                    columns = fact_columns(project_contracts().of(event_type))
                    for batch in in_portions(ds.dataset(written.address, columns, format="parquet"), PORTION):
                        facts = pa.Table.from_batches([batch])
                        lost = repeating.to_table(COORDINATES, filter=_alike(event_type, facts))
                        kept, repeated = divided(facts, lost)
                        writers.add(tables.facts(event_type), written.root, kept)
                        if event_type != RECORD_OUTCOME:
                            writers.add(tables.DUPLICATES, duplicates, repeated.select(DUPLICATE.names).cast(DUPLICATE))
                            noted = _in_time(of_duplicates(repeated), RECORD_OUTCOME)
                            writers.add(tables.facts(RECORD_OUTCOME), outcomes, noted)
            yield from writers.report()

    new = _written(task_files.shares(spark, shares), run)
    data_files.discard(file for _, file in old)
    return {tables.facts(name): [] for name, _ in old} | new


def _alike(event_type: str, facts: pa.Table) -> ds.Expression:
    """Whether a loser may be one of the facts; an outcome may be of any record."""
    first, last = (bound.as_py() for bound in pc.min_max(facts["lsn"]).values())
    within = (ds.field("lsn") >= first) & (ds.field("lsn") <= last)
    return within if event_type == RECORD_OUTCOME else within & (ds.field("event_type") == event_type)
