"""What `tidemark speed status` says of a heartbeat: words, and the exit codes that the watching DAG knows."""

import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Heartbeat
from spark_jobs.orchestration.interface import SPEED_SILENT
from spark_jobs.settings import settings
from spark_jobs.speed import status
from spark_jobs.speed.status import Status

AN_HOUR = 3600


@pytest.fixture
def store(platform_home: Any, monkeypatch: pytest.MonkeyPatch) -> ledger.Store:
    monkeypatch.setenv("TIDEMARK_HEARTBEAT_SECONDS", "0.05")
    return ledger.open()


def said() -> tuple[int, dict[str, Any]]:
    """Exit code, and the answer for programs."""
    done = CliRunner().invoke(main, ["speed", "status", "--json"])
    return done.exit_code, json.loads(done.output)


@pytest.mark.parametrize(
    ("seconds_ago", "payload", "code", "alarm"),
    [
        (0, {}, 0, None),
        (0, {"alarms": {"housekeeping": "disk full"}}, 1, "housekeeping"),
        (0, {"state": "stopped", "error": "a hole"}, 1, "heartbeat"),
        (AN_HOUR, {}, SPEED_SILENT, "heartbeat"),
        (AN_HOUR, {"state": "stopped", "error": "a hole"}, SPEED_SILENT, "heartbeat"),
        (0, {"batch_began_at": AN_HOUR}, SPEED_SILENT, "stall"),
        (0, {"batch_began_at": 0}, 0, None),
    ],
)
def test_a_restart_is_asked_for_where_it_may_help(
    store: ledger.Store, seconds_ago: float, payload: dict[str, Any], code: int, alarm: str | None
) -> None:
    at = datetime.now(UTC) - timedelta(seconds=seconds_ago)
    if "batch_began_at" in payload:  # so many seconds ago
        began = datetime.now(UTC) - timedelta(seconds=payload["batch_began_at"])
        payload = {**payload, "batch_began_at": began.isoformat()}
    with store.write() as session:
        session.merge(Heartbeat(component="speed", at=at, payload={"state": "running", "alarms": {}} | payload))
    ended, shown = said()
    assert (ended, list(shown["alarms"])) == (code, [alarm] if alarm else [])


def test_what_never_ran_is_an_alarm_and_no_silence(store: ledger.Store) -> None:
    ended, shown = said()
    assert (ended, shown["state"]) == (1, "never started")


def test_an_application_at_work_goes_on_beating_and_does_not_claim_to_know_its_lag(store: ledger.Store) -> None:
    told = Status(store)
    told.set(state="running", lag=0)
    told.batch_begins()
    began_at = store.heartbeat(status.COMPONENT).at  # type: ignore[union-attr]
    told.keep_beating()
    deadline = time.monotonic() + 15
    while (shown := said()[1])["lag"] is not None or shown["batch_began_at"] is None:
        assert time.monotonic() < deadline, "no heartbeat came"
    assert store.heartbeat(status.COMPONENT).at > began_at  # type: ignore[union-attr]
    told.batch(lsn=1, records=5, counts={}, seconds={})
    told.close()
    assert said()[1]["batch_began_at"] is None and settings().heartbeat_seconds == 0.05
