"""What reaches the driver of a run does not grow with its input: files and samples do, rows do not."""

from typing import Any

import pytest

from spark_jobs.storage import task_files
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def clicks(first: int, count: int) -> list[dict[str, Any]]:
    numbers = range(first, first + count)
    at = [f"2026-01-05T{number % 24:02d}:00:00.000Z" for number in numbers]
    return [event("page_viewed", n, user_id=n, url=f"/{n}", occurred_at=at[n - first]) for n in numbers]


def test_ten_times_the_input_gives_the_driver_no_more_rows(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of 500 page views, of as many users, and one of 5,000 upon it: facts, two kinds of views, duplicates."""
    lake.use("sessions", "page_views_per_zip_day", "event_rates")
    told, run = list[int](), task_files.run

    def counted(*arguments: Any) -> Any:
        report = run(*arguments)
        told.append(report.num_rows)
        return report

    monkeypatch.setattr(task_files, "run", counted)
    sums = []
    for number, (first, count) in enumerate(((0, 500), (500, 5_000))):
        lake.land([*clicks(first, count), *clicks(first, count // 10)])
        told.clear()
        lake.run(f"r{number}")
        sums.append(sum(told))
    assert sums[1] <= 1.5 * sums[0], sums
