"""When replays may begin."""

from datetime import UTC, datetime

import pytest

from spark_jobs.replay.planned import may_begin


@pytest.mark.parametrize(
    ("hours", "hour", "may"),
    [
        (None, 12, True),
        ("22-6", 23, True),
        ("22-6", 5, True),
        ("22-6", 6, False),
        ("9-17", 9, True),
        ("9-17", 17, False),
    ],
)
def test_replays_begin_in_their_hours(hours: str | None, hour: int, may: bool) -> None:
    assert may_begin(hours, datetime(2026, 3, 1, hour, tzinfo=UTC)) is may
