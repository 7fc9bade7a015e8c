"""What a start reads depends on what is live, not on how long the log is."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_jobs.engine.id_window import IdWindow
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.speed import catch_up, land, partials_table
from spark_jobs.speed.tiers import MANY_COMMITS
from spark_jobs.storage import coverage, duckdb_reader
from spark_jobs.storage.side_inputs import SideInputs
from tests.hot_tables import DAY, T0, VIEWS, Speed, added, compact
from tests.local_platform import Platform, event


def test_d2_the_window_of_ids_is_found_without_reading_much_more_than_it(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, looked_at = Platform(("orders_by_day",)), list[tuple[int, int]]()
    for _ in range(9):
        place.land([event("order_placed")])
    read = partials_table.read

    def recorded(kind: str, columns: Any, first: int, last: int) -> Any:
        looked_at.append((first, last))
        return read(kind, columns, first, last)

    monkeypatch.setattr(partials_table, "LOOK_BACK", 1)
    monkeypatch.setattr(partials_table, "read", recorded)
    monkeypatch.setattr(partials_table, "settings", lambda: settings().model_copy(update={"id_window_max_ids": 2}))
    assert [lsn for lsn, _ in partials_table.in_window(9)] == [8, 9]
    assert looked_at == [(9, 9), (7, 8)]


def test_d2_a_start_makes_no_dataset_of_all_files_of_the_log(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log gets two files a day, 7,300 in ten years: as a dataset they take 1 s, for side inputs 1.5 s."""
    place = Platform(("orders_by_day",))
    for _ in range(4):
        place.land([event("order_placed")])

    def refuse(table: DeltaTable, **_: object) -> None:
        raise AssertionError(f"every file of {table.table_uri} became a part of a dataset")

    monkeypatch.setattr(DeltaTable, "to_pyarrow_dataset", refuse)
    land.create()
    end, window = land.log_end(), IdWindow(3600, 100)
    partials_table.restore_window(window, end.lsn)
    assert (end.lsn, len(window)) == (4, 4)
    [view] = place.views
    assert not list(catch_up.all_gaps({view.column: 3}, 3))
    [known] = SideInputs([project_views()["payments_scored"]], 0).before(end.lsn + 1).values()
    assert not known.num_rows


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


def test_d2_gaps_are_found_portion_by_portion(speed: Speed, monkeypatch: pytest.MonkeyPatch) -> None:
    speed.micro_batches(5)
    monkeypatch.setattr(catch_up, "LSNS_AT_ONCE", 2)
    floors = {"orders_by_day_v1": 0, "sessions_v1": 1}
    found = [(gap.bounds, gap.views) for gap in catch_up.all_gaps(floors, 0)]
    assert found == [(bounds, {"sessions_v1"}) for bounds in ((2, 2), (3, 4), (5, 5))]


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
