"""Decode records of the master log in one pass: facts, rejects and duplicates.

master.log (the run's lsns) -> mapInArrow(decode) -> data files of facts.<type> and master.quarantine that no version
names yet, and the identities of the facts -> duplicates, by Spark, over the whole history -> files without them, files
of master.duplicates, and their outcomes.
The layers share `decode`; what differs is de-duplication.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow.fs import FileSystem
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.window import Window

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
from spark_jobs.storage.data_files import Written
from spark_jobs.storage.log_reader import LogRecords, Reader
from spark_jobs.storage.task_files import Batches, Task, write

COORDINATES = [name for name, _ in row_types.COORDINATES]
IDENTITIES = pa.schema(
    [("event_type", pa.string()), ("identity", pa.binary()), *row_types.COORDINATES, ("timestamp", row_types.INSTANT)]
)
DUPLICATE = pa.schema([*row_types.COORDINATES, ("event_type", pa.string()), ("identity", pa.binary())])
QUARANTINED = pa.schema([*row_types.REJECT, ("state", pa.string())])
STATE = "quarantined"

IDENTITY_FILE = "identities"
"""The name of a file of identities; other files are named by their table."""

JudgedBy = tuple[SchemaHistory, int]
"""The schemas of the log, and the cut up to which they count."""

Files = dict[str, list[tuple[int, Written]]]
"""Table -> the files with its rows, and how many rows each has."""


@contextmanager
def scratch(run_id: str) -> Iterator[str]:
    """An empty folder beside the tables, which the workers reach; it is removed afterwards."""
    root = f"{settings().warehouse}/decode.{run_id}"
    fs, path = FileSystem.from_uri(root)
    fs.create_dir(path)
    fs.delete_dir_contents(path)  # left by a try that was killed
    try:
        yield root
    finally:
        fs.delete_dir(path)


def decoded(records: LogRecords, judged_by: JudgedBy, history: DataFrame | None, folder: str) -> Files:
    """Decode `records`. `history`: the `identity` of every fact known before, if any; `folder`: for temporary files."""
    spark = records.spark
    frame, read = records.tasks()
    files = _written(frame, _decoding(read, judged_by, folder))
    identities = rows(spark, [file.address for _, file in files.pop(IDENTITY_FILE, [])], IDENTITIES)
    lost = f"{folder}/losers"
    _losers(identities, history).write.parquet(lost)
    repeated = rows(spark, [lost], IDENTITIES).select("event_type").distinct().toArrow()["event_type"].to_pylist()
    return files | _rewritten(spark, files, [*repeated, RECORD_OUTCOME], lost) if repeated else files


def rows(spark: SparkSession, addresses: Sequence[str], schema: pa.Schema) -> DataFrame:
    """The rows of Parquet files."""
    columns = from_arrow_schema(schema, prefer_timestamp_ntz=False)
    return spark.read.schema(columns).parquet(*addresses) if addresses else spark.createDataFrame([], columns)


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
        pending, size = list[Decoded](), 0
        for batch in read(batches):
            pending.append(decode_logged(pa.Table.from_batches([batch]).cast(row_types.RECORD), *judged_by))
            size += batch.num_rows
            if size >= tables.ROWS_PER_FILE:
                yield from flushed(pending)
                pending, size = [], 0
        yield from flushed(pending)

    def flushed(pending: list[Decoded]) -> Iterator[pa.RecordBatch]:
        identities = []
        for event_type in dict.fromkeys(name for chunk in pending for name in chunk.facts):
            facts = pa.concat_tables([chunk.facts[event_type] for chunk in pending if event_type in chunk.facts])
            if event_type != RECORD_OUTCOME:
                identities.append(facts.select(IDENTITIES.names).cast(IDENTITIES))
            yield from write(tables.facts(event_type), roots[event_type], _in_time(facts, event_type))
        if pending:
            rejects = pa.concat_tables([chunk.rejects for chunk in pending])
            held = rejects.append_column("state", pa.repeat(STATE, rejects.num_rows)).cast(QUARANTINED)
            yield from write(tables.QUARANTINE, quarantine, held)
        if identities:
            yield from write(IDENTITY_FILE, f"{folder}/{IDENTITY_FILE}", pa.concat_tables(identities))

    return run


def _in_time(facts: pa.Table, event_type: str) -> pa.Table:
    """The facts with their day, in the order of time, so that statistics of row groups lead to a day's facts."""
    days = facts["occurred_at"].cast(pa.timestamp("us")).cast(pa.date32())
    columns = fact_columns(project_contracts().of(event_type))
    return facts.append_column("day", days).select(columns.names).cast(columns).sort_by("occurred_at")


def _rewritten(spark: SparkSession, files: Files, event_types: Iterable[str], lost: str) -> Files:
    """The facts again without the losers, these as duplicates, and their outcomes; the old files are deleted."""
    old = [(name, file) for name in event_types for _, file in files.get(tables.facts(name), ())]
    outcomes, duplicates = tables.path(tables.facts(RECORD_OUTCOME)), tables.path(tables.DUPLICATES)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number in task_files.numbers(batches):
            event_type, written = old[number]
            facts = _table(written.address)
            first, last = (bound.as_py() for bound in pc.min_max(facts["lsn"]).values())
            here = (ds.field("lsn") >= first) & (ds.field("lsn") <= last)
            of_type = here & (ds.field("event_type") == event_type)  # an outcome may be of any type's record
            losers = _table(lost, here if event_type == RECORD_OUTCOME else of_type)
            kept, repeated = divided(facts, losers.select(COORDINATES))
            yield from write(tables.facts(event_type), written.root, kept)
            if event_type != RECORD_OUTCOME:
                noted = _in_time(of_duplicates(repeated), RECORD_OUTCOME)
                yield from write(tables.facts(RECORD_OUTCOME), outcomes, noted)
                yield from write(tables.DUPLICATES, duplicates, repeated.select(DUPLICATE.names).cast(DUPLICATE))

    new = _written(task_files.shares(spark, len(old)), run)
    data_files.discard(file for _, file in old)
    return {tables.facts(name): [] for name, _ in old} | new


def _table(address: str, where: ds.Expression | None = None) -> pa.Table:
    return ds.dataset(address, format="parquet").to_table(filter=where)


def _losers(facts: DataFrame, history: DataFrame | None) -> DataFrame:
    """Coordinates, event type and identity of every fact that is not the first of its identity.

    Only identities that occur twice, or in the history, are compared; that is one hash aggregate over 16-byte keys.
    """
    suspects = facts.groupBy("identity").count().where("count > 1").select("identity", F.lit(False).alias("is_known"))
    if history is not None:
        before = history.join(facts.select("identity"), "identity", "left_semi")
        suspects = suspects.unionByName(before.select("identity", F.lit(True).alias("is_known")))
    suspects = suspects.groupBy("identity").agg(F.max("is_known").alias("is_known"))
    order = Window.partitionBy("identity").orderBy(*COORDINATES)
    ranked = facts.join(suspects, "identity").withColumn("place", F.row_number().over(order))
    return ranked.where("is_known OR place > 1").select(IDENTITIES.names)
