"""Each row in which batch and speed differ is explained by the records behind it, or named as unexplained."""

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger.runs import UNEXPLAINED
from spark_jobs.ledger.source import Source
from spark_jobs.quality.reconciliation import agreement, by_keys
from spark_jobs.quality.reconciliation.agreement import ACCEPTED, LATE, Agreement, accepted, agree
from spark_jobs.quality.reconciliation.causes import CORRECTED, DUPLICATE, NOT_COVERED, Causes
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables
from tests.local_platform import START, Platform, change, event, market

VIEWS = ["orders_by_hour", "orders_by_day", "orders_by_colour", "sessions", "trades", "word_count", "late_and_rejected"]
Row = dict[str, Any]


@pytest.fixture(autouse=True, params=["at once", "key by key"])
def portions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs, and why, is the same where memory does not hold all rows at once."""
    if request.param == "key by key":
        monkeypatch.setattr(by_keys, "BYTES_OF_ROW", settings().check_memory_mb * by_keys.MIB)


def landed(*batches: list[dict[str, Any]], views: Sequence[str] = VIEWS) -> Platform:
    platform = Platform(views)
    for batch in batches:
        platform.land(batch)
    return platform


def agreed(platform: Platform, old: dict[str, Source], changed: dict[str, list[str]] | None = None,
           horizon: dt.datetime | None = None) -> dict[str, Agreement]:  # fmt: skip
    return {one.view: one for one in agree(platform.views, old, platform.build(horizon), changed or {})}


def order(number: int, **fields: Any) -> dict[str, Any]:
    return event("order_placed", START, event_id=f"{number:08d}-0000-4000-8000-000000000000", **fields)


def corrupt(view: str, edit: Callable[[Row], Row], lsn: int) -> None:
    """Edit the view's speed partials of one lsn."""

    def every(rows: list[Row]) -> list[Row]:
        return [{**row, view: edit(row[view])} if row["view"] == view and row["lsn"] == lsn else row for row in rows]

    change(tables.SPEED_PARTIALS, every)


def test_layers_that_saw_the_same_records_agree_on_every_row(platform_home: Path) -> None:
    platform = landed(market(0), market(1))
    old = platform.build()
    for number in range(2, 6):
        platform.land(market(number))
    found = agreed(platform, old)
    assert set(found) == set(VIEWS)
    assert all(one.rows > 0 and one.differing == 0 for one in found.values()), found


def test_a_duplicate_that_speed_no_longer_knew_explains_exactly_its_keys(platform_home: Path) -> None:
    platform = landed([order(1, store_id=3), order(2, store_id=4)], market(1), market(2))
    old = platform.build()
    platform.land(market(3))
    platform.land([order(1, store_id=3)])
    found = agreed(platform, old)
    assert found["orders_by_day"].causes == {DUPLICATE: 1}
    assert found["trades"].causes.keys() == {DUPLICATE}
    assert found["sessions"].differing == 0


def test_a_late_duplicate_that_speed_no_longer_knew_moves_from_one_note_to_the_other(platform_home: Path) -> None:
    late = {"occurred_at": "2026-03-01T09:00:00.000Z", "store_id": 3}
    platform = landed([order(1, **late), order(2)], market(1), market(2), views=["late_and_rejected"])
    old = platform.build()
    platform.land(market(4))
    platform.land([order(1, **late), order(4, **late), order(4, **late), order(5, **late)])
    assert agreed(platform, old)["late_and_rejected"].causes == {DUPLICATE: 2}

    def miscount(row: Row) -> Row:
        return {**row, "records": row["records"] + 1} if row and row["event_type"] == "page_viewed" else row

    corrupt("late_and_rejected_v1", miscount, lsn=4)
    found = agreed(platform, old)["late_and_rejected"]
    assert found.causes == {DUPLICATE: 2, UNEXPLAINED: 1}
    assert found.unexplained[0].startswith("event_type=page_viewed")


def test_the_facts_of_earlier_builds_are_not_opened(platform_home: Path) -> None:
    """Else an audit would cost what the whole history holds, once for each view."""
    platform = landed([order(1)], [order(2)], [order(3)])
    platform.build()
    name = tables.facts("order_placed")
    rows = duckdb_reader.dataset(name).to_table()
    write_deltalake(tables.path(name), rows.filter(pc.less_equal(rows["lsn"], 2)), mode="overwrite")
    [built_before] = DeltaTable(tables.path(name)).file_uris()
    write_deltalake(tables.path(name), rows.filter(pc.greater(rows["lsn"], 2)), mode="append")
    Path(built_before).unlink()
    view = platform.views["orders_by_day"]
    settled = Causes(2, 102, {}).settled(view, pa.chunked_array([range(3, 103)]))
    assert settled["lsn"].to_pylist() == [3]


def test_a_duplicate_inside_the_window_makes_no_difference(platform_home: Path) -> None:
    platform = landed([order(1)], [order(1), order(1)])
    assert all(one.differing == 0 for one in agreed(platform, {}).values())


def test_a_row_beyond_the_horizon_is_explained_as_late(platform_home: Path) -> None:
    platform = landed(market(0), market(1))
    old = platform.build(horizon=START - dt.timedelta(hours=2))
    platform.land([event("page_viewed", START - dt.timedelta(days=3), user_id=1), *market(4)])
    found = agreed(platform, old, horizon=START - dt.timedelta(hours=2))
    assert found["sessions"].causes == {LATE: 1}
    assert found["trades"].differing == 0


def test_a_view_that_was_set_aside_is_explained_where_it_lacks_partials(platform_home: Path) -> None:
    platform = landed(market(0))
    old = platform.build()
    platform.land(market(1))

    def set_aside(rows: list[Row]) -> list[Row]:
        kept = [row for row in rows if (row["view"], row["lsn"]) != ("word_count_v1", 2)]
        for row in kept:
            if row["view"] == row_types.BATCH_ROW and row["lsn"] == 2:
                row["control"]["views"].remove("word_count_v1")
        return kept

    change(tables.SPEED_PARTIALS, set_aside)
    found = agreed(platform, old)
    assert found["word_count"].causes.keys() == {NOT_COVERED}
    assert found["orders_by_day"].differing == 0


def test_a_wrong_row_is_found_where_something_touched_it_or_it_is_sampled_and_always_in_the_whole(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = landed([order(1, store_id=3), order(2, store_id=4)], views=["orders_by_day"])
    old = platform.build()
    platform.land([order(3, store_id=3)])

    def causes(wrong: int, **how: bool) -> dict[str, int]:
        def spoil(rows: list[Row]) -> list[Row]:
            return [{**row, "orders": 99} if row["store_id"] == wrong else row for row in rows]

        new = platform.build()
        new["orders_by_day"] = Source(change(batch_tables("orders_by_day")[0], spoil), None, 2, None)
        found = agree(platform.views, old, new, {}, **how)
        return next(one.causes for one in found if one.view == "orders_by_day")

    assert causes(3) == {UNEXPLAINED: 1}, "the new order touched it"
    assert causes(4, whole=True) == {UNEXPLAINED: 1}
    monkeypatch.setattr(agreement, "ONE_OF", 10**9)
    assert causes(4) == {}, "nothing touched it, and it is not in the sample of this cut"
    monkeypatch.setattr(agreement, "ONE_OF", 1)
    assert causes(4) == {UNEXPLAINED: 1}


def test_replaced_facts_explain_the_rows_of_their_days(platform_home: Path) -> None:
    platform = landed(market(0), views=["orders_by_day"])
    old = platform.build()
    old_version = change(batch_tables("orders_by_day")[0], lambda rows: [{**row, "orders": 99} for row in rows])
    old["orders_by_day"] = Source(old_version, None, 1, None)
    platform.land(market(1))
    day = START.date().isoformat()
    assert agreed(platform, old, {"orders_by_day": {"order_placed": [day]}})["orders_by_day"].causes == {CORRECTED: 1}
    assert agreed(platform, old, {"orders_by_day": {"page_viewed": [day]}})["orders_by_day"].causes == {UNEXPLAINED: 1}


def test_a_difference_without_a_cause_is_unexplained_and_named(platform_home: Path) -> None:
    platform = landed(market(0), market(1), views=["orders_by_day"])
    corrupt("orders_by_day_v1", lambda row: {**row, "orders": row["orders"] + 1}, lsn=2)
    found = agreed(platform, {})["orders_by_day"]
    assert found.causes == {UNEXPLAINED: 1}
    assert found.unexplained == ("store_id=3, day=2026-03-01: orders 2 (batch) 3 (speed)",)
    assert accepted(found, "known").causes == {ACCEPTED: 1}


def test_a_cause_does_not_cover_more_than_it_explains(platform_home: Path) -> None:
    twice = [order(1, store_id=3)]
    platform = landed(twice, market(1), market(2), market(4), twice, views=["orders_by_day", "orders_by_hour"])
    corrupt("orders_by_day_v1", lambda row: {**row, "orders": row["orders"] + 1}, lsn=2)
    found = agreed(platform, {})
    assert found["orders_by_day"].causes == {UNEXPLAINED: 1}
    assert found["orders_by_hour"].causes == {DUPLICATE: 1}


def test_a_verdict_that_speed_should_not_have_passed_is_unexplained(platform_home: Path) -> None:
    platform = landed(market(0), market(1), views=["trades"])

    def lose(rows: list[Row]) -> list[Row]:
        return [row for row in rows if (row["view"], row["lsn"]) != ("trades_v1", 2)]

    change(tables.SPEED_PARTIALS, lose)
    assert agreed(platform, {})["trades"].causes.keys() == {UNEXPLAINED}
