"""Compaction changes the files of the hot tables and no row of them."""

import datetime as dt
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.speed import (
    catch_up,
    compaction,
    continuity,
    kind_files,
    land,
    log_compaction,
    partials_table,
    tiers,
    trimming,
)
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.speed.kind_files import KindFiles
from spark_jobs.speed.log_compaction import MANY_LOG_FILES
from spark_jobs.speed.tiers import MANY_COMMITS
from spark_jobs.storage import coverage, data_files, ddl, duckdb_reader, tables
from spark_jobs.storage.fencing import Fence, Fenced
from tests import micro_batches
from tests.local_platform import Platform, market

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
DAY = 86_400
T0 = 2_860 * 7 * DAY
"""Where a week, and all shorter periods, begin."""
VIEWS = {"orders_by_day_v1", "trades_v1", "bus_latest_v1"}


class Speed:
    """The short way of the speed application over a small market, micro-batch by micro-batch."""

    def __init__(self) -> None:
        self.views = [view for view in project_views().all if view.column in VIEWS]
        self.market = Platform([])
        land.create()
        partials_table.create(self.views)
        self.writer, self.window, self.lsn = InProcessWriter(EVERY_SCHEMA, Fence(1)), IdWindow(3600, 1000), 0

    def micro_batches(self, count: int) -> None:
        for _ in range(count):
            self.lsn += 1
            self.market.lsn = self.lsn
            records = pa.Table.from_pylist([self.market.record(one) for one in market(self.lsn)], row_types.RECORD)
            taken = [continuity.Range(t, 0, 0, offset) for t, offset in self.market.offsets.items()]
            self.writer.land(records, self.lsn, land.control(1, taken, {}, NOW))
            micro_batches.compute(self.writer, records, self.lsn, self.views, self.window, NOW)


@pytest.fixture
def speed(platform_home: Path) -> Speed:
    return Speed()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fewest files be worth a compaction."""
    monkeypatch.setattr(tiers, "MANY_COMMITS", 1)
    monkeypatch.setattr(log_compaction, "MANY_LOG_FILES", 2)


def compact(at: float = T0) -> None:
    """All that is worth it at that time."""
    while compaction.compact(threading.Lock(), Fence(1), at):
        pass


def rows(table: str) -> Counter[str]:
    return Counter(repr({k: v for k, v in row.items() if k != "span"}) for row in _all(table))


def _all(table: str) -> list[dict[str, Any]]:
    return duckdb_reader.dataset(table).to_table().to_pylist()


def added() -> pa.Table:
    return pa.table(DeltaTable(tables.path(tables.SPEED_PARTIALS)).get_add_actions(flatten=True))


def spans() -> Counter[int]:
    """Number of files per span."""
    return Counter(added()["partition.span"].to_pylist())


def test_a_compaction_keeps_every_row_and_leaves_a_file_per_kind_of_row(speed: Speed) -> None:
    speed.micro_batches(MANY_COMMITS)
    before = rows(tables.SPEED_PARTIALS)
    compact()
    assert rows(tables.SPEED_PARTIALS) == before
    kinds = {row["view"] for row in _all(tables.SPEED_PARTIALS)}
    assert kinds > VIEWS
    assert spans() == {T0: len(kinds)}
    assert sorted(coverage.covered(0)) == list(range(1, MANY_COMMITS + 1))


def test_a_file_has_the_columns_of_its_kind_in_the_order_of_the_key(speed: Speed) -> None:
    speed.micro_batches(MANY_COMMITS)
    compact()
    of_trades = [
        file
        for file in duckdb_reader.dataset(tables.SPEED_PARTIALS).get_fragments()
        if "trades_v1" in file.physical_schema.names
    ]
    [file] = of_trades
    assert set(file.physical_schema.names) == {"view", "lsn", "trades_v1"}
    keys = [row["trades_v1"]["key"] for row in file.to_table().to_pylist()]
    assert keys == sorted(keys)
    assert len(set(keys)) > 1


def test_few_micro_batches_wait_for_more(speed: Speed) -> None:
    speed.micro_batches(MANY_COMMITS - 1)
    compact()
    assert set(spans()) == {0}


def test_micro_batches_and_compaction_take_turns(speed: Speed) -> None:
    """What is committed while files are read and written stays, and the next micro-batch finds no conflict."""
    speed.micro_batches(MANY_COMMITS)

    class Turn:
        """A micro-batch comes first."""

        def __enter__(self) -> None:
            speed.micro_batches(1)

        def __exit__(self, *_: object) -> None:
            pass

    compaction.compact(Turn(), Fence(1), T0)  # type: ignore[arg-type]
    speed.micro_batches(MANY_COMMITS - 1)
    assert spans()[0] == MANY_COMMITS
    compact()
    once = Counter(row["lsn"] for row in _all(tables.SPEED_PARTIALS) if row["view"] == row_types.BATCH_ROW)
    assert once == dict.fromkeys(range(1, 2 * MANY_COMMITS + 1), 1)
    assert 0 not in spans()


@pytest.mark.usefixtures("eager")
def test_d1_files_are_as_few_after_a_week_as_after_an_hour(speed: Speed) -> None:
    """A file per kind of row for each period that has settled, of lengths that grow."""
    kinds, counts = 0, []
    for number in range(48):  # a micro-batch each four hours, for eight days
        speed.micro_batches(1)
        compact(T0 + number * 14_400)
        kinds = kinds or added().num_rows
        counts.append(added().num_rows)
    before = rows(tables.SPEED_PARTIALS)
    assert sorted(coverage.covered(0)) == list(range(1, 49))
    assert max(counts) <= 14 * kinds, "at most 3 of six hours, 4 of a day, 7 of a week, with what has not settled"
    compact(T0 + 21 * DAY)
    assert spans() == {T0: kinds, T0 + 7 * DAY: kinds}
    assert rows(tables.SPEED_PARTIALS) == before


def test_d1_what_settles_becomes_part_of_ever_longer_periods() -> None:
    at = T0 + 5 * DAY + 7 * 3_600
    span = 120

    def period(after: int) -> int | None:
        return tiers.period(at, at + after)

    assert period(span) is None, "the span is over, and has not settled"
    assert [period(after) for after in (span + 18, 1_100, 4_200)] == [at, at, at]
    assert period(5 * 3_600 + 3_600) == T0 + 5 * DAY + 6 * 3_600
    assert period(DAY) == T0 + 5 * DAY
    week_settles = 2 * DAY + 17 * 3_600
    assert period(week_settles - 1) == T0 + 5 * DAY, "the week is over for less than a seventh of itself"
    assert period(week_settles) == T0


def test_d1_a_full_file_is_not_written_again_and_a_step_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "MOST_ROWS", 100)
    sizes = [60, 30, 30, 30, 30, 49, 7]
    files = pa.Table.from_pylist(
        [
            {"path": str(n), "partition.span": T0 + n * 120, "min.view": "v", "max.view": "v"}
            | {"min.lsn": n, "num_records": size, "size_bytes": 1}
            for n, size in enumerate(sizes)
        ]
    )
    assert tiers.portion(files, T0 + 21 * DAY) == [tiers.Join(("1", "2", "3"), T0)]
    rest = files.filter(pc.greater(files["min.lsn"], 3))
    assert tiers.portion(rest, T0 + 21 * DAY) == [tiers.Join(("4", "5", "6"), T0)]


def test_d1_the_spans_of_older_versions_are_joined_too() -> None:
    """They were numbers of spans: as seconds they are of 1970, a time that has settled."""
    assert {tiers.period(span, T0) for span in range(14_700_000, 14_700_720)} == {14_515_200}


def test_b12_memory_is_bounded_while_commits_are_joined(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    speed.micro_batches(MANY_COMMITS)
    before, held = rows(tables.SPEED_PARTIALS), list[int]()
    add = KindFiles.add

    def watched(files: Any, kind: str, of_kind: pa.Table) -> None:
        add(files, kind, of_kind)
        held.append(sum(files._bytes.values()))

    monkeypatch.setattr(kind_files, "HELD", 5_000)
    monkeypatch.setattr(KindFiles, "add", watched)
    compaction.compact(threading.Lock(), Fence(1), T0)
    assert rows(tables.SPEED_PARTIALS) == before
    assert len(held) >= MANY_COMMITS, "file by file"
    assert max(held) <= 5_000
    assert max(Counter(added()["min.view"].to_pylist()).values()) > 1, "a kind with many rows has several files"


def test_d4_the_rows_of_a_kind_are_picked_from_the_columns_of_that_kind(
    speed: Speed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To filter copies all columns of a file, two hundred; the rows of one view fill three of them."""

    class Wide:
        """Rows as they were read, from which columns can be chosen, but no rows."""

        def __init__(self, rows: pa.Table) -> None:
            self.column_names, self.select, self._column = rows.column_names, rows.select, rows.column

        def __getitem__(self, name: str) -> pa.ChunkedArray:
            return self._column(name)

    speed.micro_batches(MANY_COMMITS)
    before, read = rows(tables.SPEED_PARTIALS), compaction._read
    monkeypatch.setattr(compaction, "_read", lambda *of: map(Wide, read(*of)))
    compact()
    assert rows(tables.SPEED_PARTIALS) == before
    assert spans()[T0] < MANY_COMMITS


def test_a_crash_before_the_commit_changes_nothing(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    speed.micro_batches(MANY_COMMITS)
    before, files = rows(tables.SPEED_PARTIALS), added()["path"]

    def dies(*_: object, **__: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as crash:
        crash.setattr(data_files, "swap", dies)
        with pytest.raises(OSError, match="killed"):
            compact()
    assert added()["path"] == files
    assert rows(tables.SPEED_PARTIALS) == before
    compact()
    assert rows(tables.SPEED_PARTIALS) == before


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


def test_d2_a_start_opens_only_files_that_can_hold_what_it_needs(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(3):
        speed.micro_batches(MANY_COMMITS)
        compact(T0 + day * DAY)
    opened, all_files = list[int](), added().num_rows
    within = duckdb_reader.files_within

    def watched(*asked: Any) -> pa.Table:
        files = within(*asked)
        opened.append(files.num_rows)
        return files

    monkeypatch.setattr(duckdb_reader, "files_within", watched)
    monkeypatch.setattr(coverage, "files_within", watched)
    floors = dict.fromkeys(VIEWS, 2 * MANY_COMMITS)
    assert list(catch_up.all_gaps(floors, 0)) == []
    small = settings().model_copy(update={"id_window_max_ids": 1})
    monkeypatch.setattr(partials_table, "settings", lambda: small)
    assert [lsn for lsn, _ in partials_table.in_window(speed.lsn)] == [speed.lsn]
    log_end, coverage_of, landed, window = opened
    assert log_end == 1 and max(coverage_of, window) <= 3 < all_files
    assert landed <= MANY_COMMITS, "of the log, the control rows of the lsns past the cut"


def test_d1_an_answer_opens_only_the_files_that_can_hold_its_rows(speed: Speed) -> None:
    for day in range(3):
        speed.micro_batches(MANY_COMMITS)
        compact(T0 + day * DAY)
    views = Views(tuple(view for view in project_views().all if view.id == "orders_by_day"), ())
    answers = LocalAnswers(views, {"orders_by_day": Source(None, None, 2 * MANY_COMMITS, None)}, speed.lsn)
    lsns = answers.con.sql(f"SELECT DISTINCT lsn FROM ({answers.speed(views['orders_by_day'])})").fetchall()
    assert sorted(lsns) == [(lsn,) for lsn in range(2 * MANY_COMMITS + 1, 3 * MANY_COMMITS + 1)]
    [(_, files)] = answers._added.values()
    assert len(files.files) == 1 < added().num_rows


def test_d2_gaps_are_found_portion_by_portion(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    speed.micro_batches(5)
    monkeypatch.setattr(catch_up, "LSNS_AT_ONCE", 2)
    floors = {"orders_by_day_v1": 0, "sessions_v1": 1}
    found = [(gap.bounds, gap.views) for gap in catch_up.all_gaps(floors, 0)]
    assert found == [(bounds, {"sessions_v1"}) for bounds in ((2, 2), (3, 4), (5, 5))]


@pytest.mark.usefixtures("eager")
def test_trimming_spares_what_is_not_published_and_what_may_still_be_repeated(
    speed: Speed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for span in range(3):
        speed.micro_batches(2)
        compact(T0 + span * 120)
    trimming.trim(6, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [1, 2, 3, 4, 5, 6], "their ids may still be repeated"
    small = settings().model_copy(update={"id_window_max_ids": 1})
    monkeypatch.setattr(partials_table, "settings", lambda: small)
    trimming.trim(3, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [3, 4, 5, 6], "a file is removed when all of it is published"
    compact(T0 + 5 * DAY)
    trimming.trim(5, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [3, 4, 5, 6], "whatever period the file is of"
    trimming.trim(6, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [3, 4, 5, 6], "the newest ids stay known"
    speed.micro_batches(2)
    compact(T0 + 6 * DAY)
    trimming.trim(6, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [7, 8]
    restored = IdWindow(3600, 1000)
    partials_table.restore_window(restored, 8)
    assert restored.newest_lsn == 8
    speed.micro_batches(1)
    assert sorted(coverage.covered(0)) == [7, 8, 9]


def test_d2_a_start_looks_back_no_further_than_the_window(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control rows of before cost nothing, however long the log is."""
    speed.micro_batches(6)
    small = settings().model_copy(update={"id_window_max_ids": 1})
    read, looks = partials_table.read, list[object]()
    monkeypatch.setattr(partials_table, "settings", lambda: small)
    monkeypatch.setattr(partials_table, "LOOK_BACK", 1)
    monkeypatch.setattr(partials_table, "read", lambda *asked: (looks.append(asked), read(*asked))[1])
    assert [lsn for lsn, _ in partials_table.in_window(6)] == [6]
    assert len(looks) <= 2, "the newest lsn, and the one that is too much"
