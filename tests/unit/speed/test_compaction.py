"""Compaction changes the files of the hot tables and no row of them."""

import datetime as dt
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.speed import compaction, continuity, land, partials_table
from spark_jobs.speed.compaction import MANY_COMMITS, MANY_LOG_FILES, fragmented
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.storage import coverage, duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from tests import micro_batches
from tests.local_platform import Platform, market

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SPAN = 1_000_000
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
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let it be a span of the clock."""
    return lambda span: monkeypatch.setattr(compaction.time, "time", lambda: span * settings().span_seconds)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the fewest files be worth a compaction."""

    def set_limits() -> None:
        monkeypatch.setattr(compaction, "MANY_COMMITS", 1)
        monkeypatch.setattr(compaction, "MANY_LOG_FILES", 2)

    return set_limits


def compact() -> None:
    compaction.compact(threading.Lock(), Fence(1))


def rows(table: str) -> Counter[str]:
    return Counter(repr({k: v for k, v in row.items() if k != "span"}) for row in _all(table))


def _all(table: str) -> list[dict[str, Any]]:
    return duckdb_reader.dataset(table).to_table().to_pylist()


def spans() -> Counter[int]:
    """Number of files per span."""
    added = pa.table(DeltaTable(tables.path(tables.SPEED_PARTIALS)).get_add_actions(flatten=True))
    return Counter(added["partition.span"].to_pylist())


def test_a_compaction_keeps_every_row_and_leaves_a_file_per_kind_of_row(
    speed: Speed, at: Callable[[int], None]
) -> None:
    speed.micro_batches(MANY_COMMITS)
    before = rows(tables.SPEED_PARTIALS)
    at(SPAN)
    compact()
    assert rows(tables.SPEED_PARTIALS) == before
    kinds = {row["view"] for row in _all(tables.SPEED_PARTIALS)}
    assert kinds > VIEWS
    assert spans() == {SPAN: len(kinds)}
    assert sorted(coverage.covered(0)) == list(range(1, MANY_COMMITS + 1))


def test_a_file_has_the_columns_of_its_kind_in_the_order_of_the_key(speed: Speed, at: Callable[[int], None]) -> None:
    speed.micro_batches(MANY_COMMITS)
    at(SPAN)
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


def test_micro_batches_and_compaction_take_turns(
    speed: Speed, at: Callable[[int], None], eager: Callable[[], None]
) -> None:
    """What is committed while files are read and written stays, and the next micro-batch finds no conflict."""
    speed.micro_batches(MANY_COMMITS)
    at(SPAN)

    class Turn:
        """A micro-batch comes first."""

        def __enter__(self) -> None:
            speed.micro_batches(1)

        def __exit__(self, *_: object) -> None:
            pass

    compaction.compact(Turn(), Fence(1))  # type: ignore[arg-type]
    speed.micro_batches(1)
    assert sorted(coverage.covered(0)) == list(range(1, MANY_COMMITS + 3))
    assert spans()[0] == 2
    at(SPAN + 1)
    eager()
    compact()
    once = Counter(row["lsn"] for row in _all(tables.SPEED_PARTIALS) if row["view"] == row_types.BATCH_ROW)
    assert once == dict.fromkeys(range(1, MANY_COMMITS + 3), 1)
    assert 0 not in spans()


def test_a_span_that_is_over_is_compacted_once_more(speed: Speed, at: Callable[[int], None]) -> None:
    at(SPAN)
    for _ in range(2):
        speed.micro_batches(MANY_COMMITS)
        compact()
    several = spans()[SPAN]
    compact()
    assert spans()[SPAN] == several, "the span still goes on"
    before = rows(tables.SPEED_PARTIALS)
    at(SPAN + 1)
    compact()
    assert spans() == {SPAN: several // 2}
    assert rows(tables.SPEED_PARTIALS) == before
    assert not fragmented(
        pa.table(DeltaTable(tables.path(tables.SPEED_PARTIALS)).get_add_actions(flatten=True)), SPAN + 1
    )


def test_the_log_keeps_every_row(speed: Speed, eager: Callable[[], None]) -> None:
    """I12, the master log only grows."""
    speed.micro_batches(3)
    before = rows(tables.MASTER_LOG)
    eager()
    compact()
    assert len(DeltaTable(tables.path(tables.MASTER_LOG)).file_uris()) == 1
    assert rows(tables.MASTER_LOG) == before
    speed.micro_batches(1)
    assert land.log_end().lsn == 4


def test_the_log_waits_for_many_small_files(speed: Speed) -> None:
    speed.micro_batches(3)
    compact()
    with_its_beginning = 4
    assert len(DeltaTable(tables.path(tables.MASTER_LOG)).file_uris()) == with_its_beginning < MANY_LOG_FILES


def test_trimming_spares_what_is_not_published_and_what_may_still_be_repeated(
    speed: Speed, at: Callable[[int], None], eager: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    eager()
    for span in (SPAN, SPAN + 1, SPAN + 2):
        at(span)
        speed.micro_batches(2)
        compact()
    compaction.trim(6, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [1, 2, 3, 4, 5, 6], "their ids may still be repeated"
    small = settings().model_copy(update={"id_window_max_ids": 1})
    monkeypatch.setattr(partials_table, "settings", lambda: small)
    compaction.trim(3, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [3, 4, 5, 6], "a file is removed when all of it is published"
    compaction.trim(6, threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [5, 6], "the newest ids stay known"
    restored = IdWindow(3600, 1000)
    partials_table.restore_window(restored, 6)
    assert restored.newest_lsn == 6
    speed.micro_batches(1)
    assert sorted(coverage.covered(0)) == [5, 6, 7]
