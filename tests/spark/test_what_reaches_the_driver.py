"""What reaches the driver of a run does not grow with its input: files and samples do, rows do not."""

from typing import Any

import pytest

from spark_jobs.batch.build import changed_days
from spark_jobs.ledger.source import with_unbuilt
from spark_jobs.quality.reconciliation.agreement import agree
from tests.rows_fetched import counted
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def clicks(first: int, count: int) -> list[dict[str, Any]]:
    numbers = range(first, first + count)
    at = [f"2026-01-05T{number % 24:02d}:00:00.000Z" for number in numbers]
    return [event("page_viewed", n, user_id=n, url=f"/{n}", occurred_at=at[n - first]) for n in numbers]


def test_ten_times_the_input_gives_the_driver_no_more_rows(lake: Lake) -> None:
    """A run of 500 page views, of as many users, one of 5,000 upon it, and both decoded again: facts, two kinds of
    views, duplicates, agreement."""
    lake.use("sessions", "page_views_per_zip_day", "event_rates")
    sums, old = [], {}
    for number, count in enumerate((500, 5_000, 0)):
        run_id = f"r{number}"
        if count:
            lake.land([*clicks(number * 500, count), *clicks(number * 500, count // 10)])
        with counted() as told:
            lake.run(run_id, days=[] if count else ["2026-01-05"])
            run, new = lake.store.run(run_id), lake.store.built_sources(run_id)
            assert run is not None
            found = list(agree(lake.views, old, new, changed_days(lake.store, run, with_unbuilt(new, old))))
        assert found and not any(one.differing for one in found), found
        sums.append(sum(told))
        old = new
    assert sums[1] <= 1.5 * sums[0] and sums[2] <= 2 * sums[0], sums
