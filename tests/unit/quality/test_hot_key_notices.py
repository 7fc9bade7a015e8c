"""Keys that are never quiet are counted and named; what merely waits is not meant."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.quality.hot_key_notices import long_stretches
from tests.local_platform import START, Platform, event

DAY = timedelta(days=1)


@dataclass
class Built:
    """As much of a ledger's Build as is asked for."""

    batch_version: int


@pytest.fixture
def platform(platform_home: Path) -> Platform:
    return Platform(["sessions", "trades", "bus_speed", "calories_burned"])


def told(platform: Platform) -> list[str]:
    builds: dict[str, Any] = {
        view_id: Built(source.batch_version)
        for view_id, source in platform.build().items()
        if source.batch_version is not None
    }
    return list(long_stretches(platform.views, builds, timedelta(days=2)))


def visit(user: int, days: int) -> list[dict[str, Any]]:
    """A page every half hour: never quiet, as a gap of 30 minutes belongs to the session."""
    return [event("page_viewed", START + timedelta(minutes=30 * n), user_id=user, url="/") for n in range(48 * days)]


def test_a_session_longer_than_the_horizon_is_counted_and_named(platform: Platform) -> None:
    platform.land([*visit(7, days=3), *visit(8, days=1), *visit(9, days=4)])
    assert told(platform) == [
        "sessions: 2 keys have not been quiet for more than 2 days, such as user_id 9, 7; each new row of theirs "
        "resolves all that long"
    ]


def test_what_waits_and_what_is_carried_is_no_noise(platform: Platform) -> None:
    """An order that waits for days, and a bus that reports for days."""
    orders = [event("order_placed", START), event("order_executed", START + 5 * DAY)]
    reports = [event("bus_position_reported", START + timedelta(hours=n), bus_id="b") for n in range(100)]
    platform.land([event("order_placed", START, comp_id=1002), *reports, *orders])
    assert told(platform) == []
