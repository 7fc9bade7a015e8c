"""Notes through both layers: the short way, the files that a build writes and writes again, a forced day."""

import pytest

from spark_jobs.publication.publish import ensure_serving
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark

DAY = "2025-03-01"  # of the examples


def test_a_record_has_one_note_in_both_layers_and_after_each_build(lake: Lake) -> None:
    """A repeated late order is a duplicate and no longer late; a forced day leaves all as it was."""
    lake.use("late_and_rejected", "orders_by_day")
    orders = [event("order_placed", number) for number in (1, 1, 2)]
    lake.land([*orders, b"{", b'{"event_type":"order_placed"}'], topic="order_placed")
    lake.land([event("page_viewed", 3), event("order_placed", 2)])
    ensure_serving(lake.rows, lake.views, lake.store)
    expected = [
        ("order_placed", "duplicate", "repeated", 2),
        ("order_placed", "late", "days", 2),
        ("order_placed", "rejected", "missing_field", 1),
        ("page_viewed", "late", "days", 1),
        ("unknown", "rejected", "not_json", 1),
    ]
    totals = "SELECT event_type, verdict, reason, sum(records) FROM late_and_rejected GROUP BY ALL"
    assert lake.ask(totals) == expected, "by speed alone"
    lake.run("r1")
    noted = lake.rows("SELECT lsn, topic, offset, verdict FROM facts.record_noted")
    assert noted == [
        (1, "order_placed", 0, "late"),
        (1, "order_placed", 1, "duplicate"),
        (1, "order_placed", 2, "late"),
        (1, "order_placed", 3, "rejected"),
        (1, "order_placed", 4, "rejected"),
        (2, "order_placed", 5, "duplicate"),
        (2, "page_viewed", 0, "late"),
    ]
    assert lake.ask(totals) == expected, "built"
    assert any("3 facts, 2 quarantined, 2 duplicates" in line for line in lake.lines), "a note is counted as no fact"
    lake.land([event("order_placed", 1), event("order_placed", 4)])
    lake.run("r2", days=[DAY])
    run = lake.store.run("r2")
    assert run is not None and not run.summary["changed_days"]
    expected[0], expected[1] = ("order_placed", "duplicate", "repeated", 3), ("order_placed", "late", "days", 3)
    assert lake.ask(totals) == expected, "built from old and new, some decoded again"
