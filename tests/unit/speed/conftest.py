"""A small market in the hot tables, and a ledger with the status of an application that is well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.speed import log_compaction, tiers
from spark_jobs.speed.status import Status
from tests.hot_tables import Speed


@pytest.fixture
def speed(platform_home: Path) -> Speed:
    return Speed()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the fewest files be worth a compaction."""
    monkeypatch.setattr(tiers, "MANY_COMMITS", 1)
    monkeypatch.setattr(log_compaction, "MANY_LOG_FILES", 2)


@pytest.fixture
def store(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TIDEMARK_HEARTBEAT_SECONDS", "0.05")
    monkeypatch.setenv("TIDEMARK_DISK_ALARM_SHARE", "0")
    settings.cache_clear()
    opened = ledger.open()
    yield opened
    opened.close()


@pytest.fixture
def status(store: Store) -> Status:
    """An application that runs and is well."""
    told = Status(store)
    told.set(state="running")
    return told


@pytest.fixture
def beating(status: Status) -> Iterator[Status]:
    """It says so again and again, as it does in its process."""
    status.keep_beating()
    yield status
    status.close()
