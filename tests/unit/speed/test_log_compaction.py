"""Compaction changes the files of the log and no row of it; what Delta writes about them is bounded."""

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.speed import land, log_compaction
from spark_jobs.speed.log_compaction import MANY_LOG_FILES
from spark_jobs.speed.tiers import MANY_COMMITS
from spark_jobs.storage import coverage, ddl, tables
from spark_jobs.storage.fencing import Fenced
from tests.hot_tables import NOW, T0, Speed, compact, rows


@pytest.mark.usefixtures("eager")
def test_the_log_keeps_every_row(speed: Speed) -> None:
    """I12, the master log only grows."""
    speed.micro_batches(3)
    before = rows(tables.MASTER_LOG)
    compact(dt.datetime.now(dt.UTC).timestamp())
    assert rows(tables.MASTER_LOG) == before
    assert land.log_end().lsn == 3
    assert land.create() != EVERY_SCHEMA
    speed.micro_batches(1)
    assert land.log_end().lsn == 4


@pytest.mark.usefixtures("eager")
def test_d3_records_and_control_rows_of_the_log_part(speed: Speed) -> None:
    speed.micro_batches(4)
    compact(dt.datetime.now(dt.UTC).timestamp())
    log = pa.table(DeltaTable(tables.path(tables.MASTER_LOG)).get_add_actions(flatten=True))
    kinds = set(zip(log["min.kind"].to_pylist(), log["max.kind"].to_pylist(), strict=True))
    assert kinds == {("record", "record"), ("__batch__", "schema")}
    assert log.num_rows == 2
    assert coverage.records(0, 4) == dict.fromkeys(range(1, 5), 5)
    assert coverage.records(1, 3) == dict.fromkeys((2, 3), 5)


def test_the_log_waits_for_many_small_files(speed: Speed) -> None:
    speed.micro_batches(3)
    compact(dt.datetime.now(dt.UTC).timestamp())
    with_its_beginning = 4
    assert len(DeltaTable(tables.path(tables.MASTER_LOG)).file_uris()) == with_its_beginning < MANY_LOG_FILES


def test_d3_files_of_the_log_are_joined_with_those_of_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row is written again three times; what is large enough never; a day that is over keeps no small files."""
    monkeypatch.setattr(log_compaction, "MANY_LOG_FILES", 3)
    today = dt.date(2026, 3, 1)

    def joined(sizes: list[int], on: dt.date = today) -> tuple[str, ...] | None:
        files = pa.Table.from_pylist(
            [
                {"path": str(n), "partition.landed_on": today, "min.kind": "record", "max.kind": "record"}
                | {"min.lsn": n, "size_bytes": size}
                for n, size in enumerate(sizes)
            ]
        )
        join = log_compaction.portion(files, on)
        return None if join is None else join.paths

    mib = 2**20
    assert joined([100 * mib, 2 * mib, 100 * mib, 2 * mib]) is None
    assert joined([100 * mib, 2 * mib, 100 * mib, 2 * mib, 3 * mib]) == ("1", "3", "4")
    assert joined([100 * mib, 300 * mib, 100 * mib, 90 * mib, 80 * mib]) == ("0", "2", "3"), "they make a large file"
    assert joined([100 * mib, 2 * mib, 300 * mib], today + dt.timedelta(days=1)) == ("0", "1")
    assert joined([100 * mib, 300 * mib], today + dt.timedelta(days=1)) is None


def test_d3_the_delta_logs_of_the_hot_tables_stay_short(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appends write checkpoints and remove older commits; tables of older versions get the properties at a start."""
    at_once = {"delta.logRetentionDuration": "interval 0 seconds", "delta.checkpointInterval": "5"}
    Speed()
    monkeypatch.setattr(ddl, "COMMITTED_OFTEN", at_once)
    monkeypatch.setattr(ddl, "GROWS_FOR_EVER", at_once)
    speed = Speed()
    speed.micro_batches(40)
    for table in (tables.MASTER_LOG, tables.SPEED_PARTIALS):
        commits = list(Path(tables.path(table), "_delta_log").glob("*.json"))
        assert len(commits) <= 10, table
        assert len(list(Path(tables.path(table), "_delta_log").glob("*.checkpoint.parquet"))) <= 3
    assert land.log_end().lsn == 40
    with pytest.raises(Fenced, match="lsn 40 cannot land"):
        speed.writer.land(row_types.RECORD.empty_table(), 40, land.control(1, [], {}, NOW))


def test_d3_checkpoints_name_no_files_that_were_removed_long_ago(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default those of a week: with a micro-batch a second 600,000 of them, which each checkpoint writes again."""
    kept, hot = "delta.deletedFileRetentionDuration", (tables.MASTER_LOG, tables.SPEED_PARTIALS)
    Speed()
    for table in hot:
        assert DeltaTable(tables.path(table)).metadata().configuration[kept] == "interval 2 hours"
    at_once = {kept: "interval 0 seconds", "delta.checkpointInterval": "5"}
    monkeypatch.setattr(ddl, "COMMITTED_OFTEN", at_once)
    monkeypatch.setattr(ddl, "GROWS_FOR_EVER", at_once)
    speed = Speed()
    speed.micro_batches(2 * MANY_COMMITS)
    compact(T0)
    speed.micro_batches(10)
    for table in hot:
        log = Path(tables.path(table), "_delta_log")
        removed = sum('"remove"' in line for file in log.glob("*.json") for line in file.read_text().splitlines())
        newest = pq.read_table(max(log.glob("*.checkpoint.parquet")), columns=["remove"])["remove"]
        assert removed > MANY_COMMITS and newest.null_count == len(newest), table
