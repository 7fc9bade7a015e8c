"""Which facts repeat one: an index of the identities of all facts, in buckets, instead of a join with all history.

identities of new facts (staged by `decode_job`), master.identities -> tasks, bucket by bucket, in DuckDB -> the losers,
in staged files; files of master.identities with the new winners, which no version names yet.

A bucket is the identities that begin with the same four bits; in a file they are in order, each with the lsn of its
fact. Small files of a bucket are joined with those of about their size, so that there are few, and each is written
again only when the bucket has doubled.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.partials import in_order
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.settings import settings
from spark_jobs.storage import data_files, ddl, duckdb_reader, tables, task_files
from spark_jobs.storage.data_files import ROW_GROUP, Committing, FileWriter
from spark_jobs.storage.fact_slices import Slice
from spark_jobs.storage.lsn_ranges import Scope
from spark_jobs.storage.task_files import ARROW_ROWS, Batches, Task

BUCKETS = 16
PER_TASK = 100_000
"""Identities, new and known, for which a task more is worth its start."""
BUCKET = "bucket"
INDEX = pa.schema([("identity", pa.binary()), ("lsn", pa.int64())])
STAGED = pa.schema(
    [("event_type", pa.string()), ("identity", pa.binary()), *row_types.COORDINATES, ("timestamp", row_types.INSTANT)]
)
"""What is staged of each new fact, in the order of identities."""
LOSERS = "losers"
COORDINATES = listed(dict(row_types.COORDINATES), Dialect.DUCKDB)


@dataclass(frozen=True)
class _Bucket:
    """known: files with the identities of older facts, and their rows; joined: those of them that are written again."""

    number: int
    known: dict[str, int] = field(default_factory=dict)
    joined: list[str] = field(default_factory=list)


def create() -> None:
    """Create the index, unless it exists."""
    schema = pa.schema([*INDEX, (BUCKET, pa.int64())])
    ddl.create(tables.IDENTITIES, schema, partition_by=[BUCKET], properties=ddl.looked_up_by("lsn"))


def losers(
    spark: SparkSession, staged: Mapping[str, int], todo: Scope, folder: str, committing: Committing
) -> tuple[set[str], list[str]]:
    """The facts that are not the first of their identity: their event types, and staged files (columns of STAGED).

    staged: files of the facts of the lsns to do, and their rows. The index has those that are, when this is done.
    """
    read = DeltaTable(tables.path(tables.IDENTITIES))
    buckets = _buckets(read, todo)
    shares = _shares(sum(staged.values()) + sum(sum(bucket.known.values()) for bucket in buckets))
    report = task_files.run(task_files.shares(spark, shares), _comparing(buckets, shares, [*staged], todo, folder))
    files, root = task_files.files(report), f"{tables.path(tables.IDENTITIES)}/"
    joined = (address for bucket in buckets for address in bucket.joined if address.startswith(root))
    removed = {address.removeprefix(root) for address in joined}
    written = [file for _, file in files.pop(tables.IDENTITIES, [])]
    if removed or written:
        data_files.swap(read, removed, written, committing)
    types = {row["name"] for row in report.to_pylist() if row["file"] is None}
    return types, [file.address for _, file in files.get(LOSERS, ())]


def _shares(identities: int) -> int:
    """How many tasks share the buckets: at least one for each core."""
    return min(BUCKETS, max(settings().cores, identities // PER_TASK))


def _buckets(read: DeltaTable, todo: Scope) -> list[_Bucket]:
    """The buckets with their files; where there is no index yet, the facts' own files stand for it."""
    buckets = [_Bucket(number) for number in range(BUCKETS)]
    indexed = pa.table(read.get_add_actions(flatten=True)).to_pylist()
    if not indexed and todo.previous:
        sent = [contract.event_type for contract in project_contracts() if not contract.is_outcome]
        facts = dict(file for event_type in sent for file in Slice(todo.previous).files(event_type).items())
        return [_Bucket(bucket.number, facts, [*facts]) for bucket in buckets]
    for bucket in buckets:
        files = [file for file in indexed if int(file[f"partition.{BUCKET}"]) == bucket.number]
        alike = _alike(files)
        for file in files:
            address = f"{tables.path(tables.IDENTITIES)}/{file['path']}"
            bucket.known[address] = file["num_records"]
            if todo.again or file["max.lsn"] > todo.previous or file in alike:
                bucket.joined.append(address)
    return buckets


def _alike(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The files to join: the smallest ones, up to the last that has at most twice as many rows as those before it."""
    files, count, smaller = sorted(files, key=lambda file: file["num_records"]), 0, 0
    for number, file in enumerate(files):
        if number and file["num_records"] <= 2 * smaller:
            count = number + 1
        smaller += file["num_records"]
    return files[:count]


def _comparing(buckets: Sequence[_Bucket], shares: int, staged: Sequence[str], todo: Scope, folder: str) -> Task:
    root, columns = tables.path(tables.IDENTITIES), listed(STAGED.names, Dialect.DUCKDB)

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for bucket in (one for share in task_files.numbers(batches) for one in buckets[share::shares]):
            con = duckdb_reader.of_task()
            for name, files, schema in (
                ("staged", staged, STAGED),
                ("known", [*bucket.known], INDEX),
                ("joined", bucket.joined, INDEX),
            ):
                con.register(name, _within(bucket.number, files, schema))
            _compare(con, todo)
            lost = con.sql(f"SELECT {columns} FROM losers ORDER BY event_type, lsn").to_arrow_table().cast(STAGED)
            yield from task_files.write(LOSERS, folder, lost, ROW_GROUP)
            types = [{"name": name} for name in pc.unique(lost["event_type"]).to_pylist()]
            yield from pa.Table.from_pylist(types, schema=task_files.REPORT).to_batches()
            rows = con.sql(in_order("FROM winners UNION ALL FROM joined WHERE " + todo.sql_kept(), ["identity"]))
            with FileWriter(root, (BUCKET, bucket.number), ["lsn"]) as writer:
                for batch in rows.to_arrow_reader(ARROW_ROWS):
                    writer.add(pa.Table.from_batches([batch]).cast(INDEX))
                yield from task_files.reported(tables.IDENTITIES, writer.written())
            duckdb_reader.drop(con, "fresh", "before", "twice", "losers", "winners")

    return run


def _within(bucket: int, files: Sequence[str], schema: pa.Schema) -> ds.Dataset | pa.Table:
    """The rows of a bucket."""
    if not files:
        return schema.empty_table()
    return ds.dataset(list(files), format="parquet", schema=schema).filter(of_bucket(bucket))


def of_bucket(number: int) -> ds.Expression:
    """Over a column `identity`: whether it is of that bucket."""
    width = 256 // BUCKETS
    identity, end = ds.field("identity"), (number + 1) * width
    begins = identity >= bytes([number * width])
    return begins & (identity < bytes([end])) if end < 256 else begins


def _compare(con: duckdb.DuckDBPyConnection, todo: Scope) -> None:
    """Make the tables `losers` and `winners` of the `staged` facts and the `known` identities of the history.

    Only identities that occur twice, or in the history, are looked at closely. The lowest coordinates win.
    """
    for name, query in {
        "fresh": "FROM staged",
        "before": f"SELECT DISTINCT identity FROM known SEMI JOIN fresh USING (identity) WHERE {todo.sql_history()}",
        "twice": "SELECT identity FROM fresh GROUP BY identity HAVING count(*) > 1",
        "losers": "SELECT f.* FROM fresh f SEMI JOIN before USING (identity) UNION ALL "
        "SELECT f.* FROM fresh f SEMI JOIN twice USING (identity) ANTI JOIN before USING (identity) "
        f"QUALIFY row_number() OVER (PARTITION BY identity ORDER BY {COORDINATES}) > 1",
        "winners": "SELECT identity, min(lsn) AS lsn FROM fresh ANTI JOIN before USING (identity) GROUP BY identity",
    }.items():
        con.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")
