"""A predicate on a key of a serving view reaches every scan, through merge and union and into the speed structs."""

import pytest

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import sequences
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.publication.publish import ensure_serving
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("view", "event_type", "predicate", "column"),
    [
        ("orders_by_day", "order_placed", "store_id = 3", "store_id"),
        ("orders_by_day", "order_placed", "day = DATE '2025-03-01'", "day"),
        ("sessions", "page_viewed", "user_id = 7", "key"),
    ],
)
def test_a_predicate_on_a_key_reaches_every_scan(
    lake: Lake, view: str, event_type: str, predicate: str, column: str
) -> None:
    lake.use(view)
    lake.land([event(event_type, 1)])
    ensure_serving(lake.rows, lake.views, lake.store)
    lake.run("r1")
    lake.land([event(event_type, 2)])
    plan = lake.spark.sql(f"EXPLAIN FORMATTED SELECT * FROM serving.{view} WHERE {predicate}").collect()[0][0]
    scans = [part for part in plan.split("\n\n") if ") Scan parquet" in part and "PushedFilters" in part]
    assert len(scans) >= 2
    assert all(f"{column}," in scan.split("PushedFilters:")[1] for scan in scans), scans


def test_the_cut_and_the_version_prune_files_of_the_speed_table(lake: Lake) -> None:
    lake.use("orders_by_day")
    for number in range(3):
        lake.land([event("order_placed", number)])
    ensure_serving(lake.rows, lake.views, lake.store)
    lake.run("r1")
    lake.land([event("order_placed", 9)])
    files = lake.spark.sql("SELECT * FROM serving.orders_by_day").inputFiles()
    speed = [file for file in files if "/speed.db/" in file]
    assert len(speed) == 1, files


def test_only_keys_with_new_rows_are_resolved_once_more(lake: Lake) -> None:
    """Fifty sessions are built, one goes on: the window functions see its rows alone, the others are read as built."""
    lake.use("sessions")
    pages = [event("page_viewed", number, user_id=number % 50 + 1, url=f"/{number}") for number in range(100)]
    lake.land(pages)
    ensure_serving(lake.rows, lake.views, lake.store)
    lake.run("r1")
    lake.land([event("page_viewed", 100, user_id=7, url="/new")])
    view, current = lake.views["sessions"], lake.store.current_publication()
    assert isinstance(view, SequenceView) and current is not None
    source = lake.store.sources(current)["sessions"]
    stored = f"batch.`sessions_rows` VERSION AS OF {source.batch_version}"
    new = "(SELECT sessions_v1.* FROM speed.partials WHERE view = 'sessions_v1' AND lsn > 1)"
    assert lake.spark.sql(sequences.live(view.row_kinds, Dialect.SPARK, stored, new)).count() == 2 + 1
    assert len(lake.rows("SELECT * FROM serving.sessions")) == 50
    plan = lake.spark.sql("EXPLAIN SELECT * FROM serving.sessions").collect()[0][0]
    assert "LeftAnti" in plan[: plan.index("Window [")], "what is built is not read as it is"
    assert "LeftSemi" in plan[plan.index("Window [") :], "rows that nothing new touches reach the windows"
