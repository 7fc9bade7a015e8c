"""Pins answer the same for ever; retention takes only what no pin and no publication needs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from sqlalchemy import update

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger.schema import Publication
from spark_jobs.ledger.store import LedgerError
from spark_jobs.publication import pins
from spark_jobs.publication.retention import retain
from spark_jobs.storage import tables
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def order(number: int) -> dict[str, object]:
    return event("order_placed", number, occurred_at=f"2026-01-05T09:{number % 60:02d}:00.000Z", store_id=1)


def page(number: int) -> dict[str, object]:
    return event("page_viewed", number, occurred_at=f"2026-01-05T09:{number % 60:02d}:00.000Z", user_id=7)


def count(lake: Lake, schema: str = "serving") -> int:
    return sum(orders for (orders,) in lake.rows(f"SELECT orders FROM {schema}.orders_by_day"))


def test_a_pin_answers_as_the_platform_did_at_its_moment(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1)])
    lake.run("r1")
    lake.land([order(2)])
    between = datetime.now(UTC)
    lake.land([order(3)])
    now = pins.create(lake.rows, lake.views, lake.store, "now")
    lake.run("r2")
    lake.land([order(4)])
    then = pins.create(lake.rows, lake.views, lake.store, "pin_then", at=between)
    assert (now.head, then.head, then.publication_id) == (3, 2, now.publication_id)
    assert (count(lake, "pin_now"), count(lake, "pin_then"), count(lake)) == (3, 2, 4)
    assert pins.create(lake.rows, lake.views, lake.store, "now").now == now.now, "a retry finds its pin"
    pins.drop(lake.rows, lake.store, "now")
    assert [pin.name for pin in lake.store.pins()] == ["then"]
    with pytest.raises(LedgerError, match="no pin is called now"):
        pins.drop(lake.rows, lake.store, "now")


def test_a_pin_of_what_is_published_is_exact_where_the_speed_layer_is_not_yet(lake: Lake) -> None:
    """A duplicate that comes later than the window of ids counts twice until the next build, and not in such a pin."""
    lake.use("orders_by_day", "sessions", "trades", "items_sold_last_hour", "top_sellers")
    lake.land([order(1), page(2)])
    lake.run("r1")
    lake._window = IdWindow(3600, 1_000_000)
    lake.land([order(1), page(3)])
    assert count(lake) == 2, "which the next build mends"
    pins.create(lake.rows, lake.views, lake.store, "marts", is_published=True)
    files = pins.by_files(lake.store, lake.views, "marts")
    for view in lake.views:
        rows = lake.rows(f"SELECT * FROM pin_marts.{view.name}")
        assert len(rows) == len(files.con.sql(files.answer(view)).fetchall()), view.name
    assert count(lake, "pin_marts") == 1 and lake.rows("SELECT pages FROM pin_marts.sessions") == [(1,)]


@pytest.mark.slow
def test_retention_removes_only_what_nobody_was_promised(lake: Lake) -> None:
    lake.use("orders_by_day", "word_count")
    for number in (1, 2, 3, 4):
        lake.land([order(number), event("sentence_posted", number + 100, text=f"word{number}")])
        lake.run(f"r{number}")
        if number == 2:
            pins.create(lake.rows, lake.views, lake.store, "kept")
    words = lake.rows("SELECT * FROM pin_kept.word_count")
    versions = {run: lake.store.builds(run)["word_count"].batch_version for run in ("r1", "r2", "r3", "r4")}
    with lake.store.write() as session:
        session.execute(update(Publication).values(done_at=datetime.now(UTC) - timedelta(days=60)))
    done = retain(lake.store, lake.views, project_contracts().event_types, _no_connection, grace_hours=0)
    assert len(done.expired) == 2, "those of r1 and r3; not the pinned one, not the one in force"
    assert done.trim_up_to == 2
    trim = lake.store.next_request("trim")
    assert trim is not None and (trim.kind, trim.arguments) == ("trim", {"up_to_lsn": 2})
    assert lake.rows("SELECT * FROM pin_kept.word_count") == words
    assert count(lake) == 4
    files = {run: DeltaTable(tables.path("batch.word_count"), version=v).file_uris() for run, v in versions.items()}
    present = {run: all(Path(f).exists() for f in listed) for run, listed in files.items()}
    assert present == {"r1": False, "r2": True, "r3": False, "r4": True}
    lake.land([order(5)])
    lake.run("r5")
    assert count(lake) == 5


def _no_connection() -> None:
    raise AssertionError("no pin is due")
