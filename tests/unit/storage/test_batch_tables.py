"""Tables of builds are read at a version, however many nights were before."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_jobs.storage import batch_tables, ddl, tables

TABLE = "batch.things"
ROWS = pa.table({"number": [1]})
NIGHTS = 35


def commits_since_checkpoint(version: int) -> int:
    log = Path(tables.path(TABLE), "_delta_log")
    known = [int(file.name.partition(".")[0]) for file in log.glob("*.checkpoint.parquet")]
    return version - max((number for number in known if number <= version), default=0)


def test_d1_whoever_reads_a_build_reads_ten_commits_at_most(platform_home: Path) -> None:
    ddl.create(TABLE, ROWS.schema)  # as an older version of the program made it
    batch_tables.create(TABLE, ROWS.schema)
    for _ in range(NIGHTS):
        write_deltalake(tables.path(TABLE), ROWS, mode="overwrite")
    newest = DeltaTable(tables.path(TABLE)).version()
    assert newest >= NIGHTS
    assert all(commits_since_checkpoint(version) <= 10 for version in range(newest + 1))
