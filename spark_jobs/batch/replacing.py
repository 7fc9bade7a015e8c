"""What a repeated decode changes in the tables: which days' facts differ, and files without the rows that go.

files of a table, lsns -> a task per file -> counts and hashes per day; or the file again without those rows.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import SparkSession

from spark_jobs.batch.build_tasks import days_together
from spark_jobs.batch.decode_job import fact_columns
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.storage import duckdb_reader, tables, task_files
from spark_jobs.storage.data_files import FileWriter
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.lsn_ranges import Scope
from spark_jobs.storage.task_files import PORTION, Batches, Files

Addresses = Mapping[str, list[str]]
"""Table -> addresses of files."""
MARKS = pa.schema([("event_type", pa.string()), ("day", pa.string()), ("rows", pa.int64()), ("mark", pa.int64())])


def changed_days(spark: SparkSession, old: Addresses, new: Addresses, todo: Scope) -> dict[str, list[str]]:
    """Event type -> days whose facts changed when lsns were decoded again (I7: none, as a rule)."""
    before, after = (_marks(spark, files, todo) for files in (old, new))
    differing = sorted(key for key in before | after if before.get(key) != after.get(key))
    return days_together({event_type: [day]} for event_type, day in differing)


def _marks(spark: SparkSession, files: Addresses, todo: Scope) -> dict[tuple[str, str], tuple[int, int]]:
    """(event type, day) -> count and hash of the facts of the lsns `again`; the hash ignores their order."""
    contracts = {tables.facts(contract.event_type): contract for contract in project_contracts()}
    work = [(contracts[table], address) for table, of in files.items() if table in contracts for address in of]

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        con = duckdb_reader.of_task()
        for number in task_files.numbers(batches):
            contract, address = work[number]
            columns = fact_columns(contract)
            con.register("facts", ds.dataset(address, format="parquet", schema=columns))
            hashed = f"CAST(hash({listed(sorted(columns.names), Dialect.DUCKDB)}) >> 1 AS BIGINT)"
            marks = con.sql(
                f"SELECT '{contract.event_type}', CAST(day AS VARCHAR), count(*), bit_xor({hashed}) FROM facts "
                f"WHERE {todo.sql_again()} GROUP BY day"
            )
            yield from marks.to_arrow_table().rename_columns(MARKS.names).cast(MARKS).to_batches()

    marks: dict[tuple[str, str], tuple[int, int]] = {}
    if work:
        for row in task_files.run(task_files.shares(spark, len(work)), run, MARKS).to_pylist():
            rows, mark = marks.get(key := (row["event_type"], row["day"]), (0, 0))
            marks[key] = rows + row["rows"], mark ^ row["mark"]
    return marks


def only(spark: SparkSession, keep: Mapping[str, tuple[str, ds.Expression]]) -> tuple[Files, set[str]]:
    """Files again with the rows to keep (address -> table, and which), and the addresses of those that lose a row."""
    work = list(keep.items())
    roots = {table: tables.path(table) for table, _ in keep.values()}

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number in task_files.numbers(batches):
            address, (table, kept) = work[number]
            rows = ds.dataset(address, format="parquet")
            if not rows.count_rows(filter=~kept):
                continue
            with FileWriter(roots[table]) as writer:
                count = 0
                for batch in in_portions(rows, PORTION, kept):
                    writer.add(pa.Table.from_batches([batch]))
                    count += batch.num_rows
                yield from task_files.reported(table, writer.written(), count)
            yield from pa.Table.from_pylist([{"name": address}], schema=task_files.REPORT).to_batches()

    if not work:
        return {}, set()
    report = task_files.run(task_files.shares(spark, len(work)), run)
    return task_files.files(report), {row["name"] for row in report.to_pylist() if row["file"] is None}
