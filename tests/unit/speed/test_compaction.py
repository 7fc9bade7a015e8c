"""Compaction changes the files of the hot tables and no row of them."""

import threading
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.speed import compaction, kind_files, partials_table, tiers, trimming
from spark_jobs.speed.kind_files import KindFiles
from spark_jobs.speed.tiers import MANY_COMMITS
from spark_jobs.storage import coverage, data_files, duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from tests.hot_tables import DAY, T0, VIEWS, Speed, added, all_rows, compact, rows, spans


def test_a_compaction_keeps_every_row_and_leaves_a_file_per_kind_of_row(speed: Speed) -> None:
    speed.micro_batches(MANY_COMMITS)
    before = rows(tables.SPEED_PARTIALS)
    compact()
    assert rows(tables.SPEED_PARTIALS) == before
    kinds = {row["view"] for row in all_rows(tables.SPEED_PARTIALS)}
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
    once = Counter(row["lsn"] for row in all_rows(tables.SPEED_PARTIALS) if row["view"] == row_types.BATCH_ROW)
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
