"""`tidemark alarms`: what is shown, who is named, and the exit codes that the watching DAG knows."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Heartbeat
from spark_jobs.ledger.store import Store
from spark_jobs.orchestration.interface import ALARM_RAISED, SPEED_SILENT
from spark_jobs.settings import settings
from spark_jobs.speed import alarms, watch
from spark_jobs.speed.alarms import Backlog
from spark_jobs.speed.continuity import EMPTY
from spark_jobs.speed.status import COMPONENT, Status


@pytest.fixture
def store(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """Beside a Kafka in which nothing is unread; tests/e2e/test_alarms.py asks a real one."""
    monkeypatch.setattr(watch, "look_once", lambda store: alarms.settle(store, Backlog(EMPTY)))
    monkeypatch.setenv("TIDEMARK_DISK_ALARM_SHARE", "0")
    settings.cache_clear()
    opened = ledger.open()
    Status(opened).set(state="running")
    yield opened
    opened.close()


def asked(*words: str) -> Result:
    return CliRunner().invoke(main, ["alarms", *words])


def test_nothing_rings_is_exit_code_0(store: Store) -> None:
    assert (asked().output, asked().exit_code) == ("nothing rings\n", 0)
    assert json.loads(asked("--json").output) == []


def test_an_alarm_is_exit_code_5_until_somebody_sees_to_it(store: Store) -> None:
    status = Status(store)
    status.problem("alerts", "the broker\x1b[2J is away")
    status.set(state="running")
    shown = asked()
    assert shown.exit_code == ALARM_RAISED
    assert "the broker\\x1b[2J is away" in shown.output and "docs/runbooks/alarms.md#alerts" in shown.output
    assert asked("ack", "1", "--by", "ada").output == "alerts: ada sees to it; docs/runbooks/alarms.md#alerts\n"
    known = asked("--json")
    assert known.exit_code == 0
    assert [(row["name"], row["acknowledged_by"]) for row in json.loads(known.output)] == [("alerts", "ada")]
    status.problem("alerts", None)
    status.beat()
    assert asked().output == "nothing rings\n"
    assert "until" in asked("--all").output and len(json.loads(asked("--all", "--json").output)) == 1


def test_a_silent_application_is_exit_code_4_whoever_sees_to_it(store: Store) -> None:
    with store.write() as session:
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        session.merge(Heartbeat(component=COMPONENT, at=long_ago, payload={"state": "running", "alarms": {}}))
    assert asked().exit_code == SPEED_SILENT
    asked("ack", "1")
    assert asked().exit_code == SPEED_SILENT


def test_an_alarm_that_is_not_there_is_refused(store: Store) -> None:
    refused = asked("ack", "7")
    assert refused.exit_code == 1 and "there is no alarm 7" in refused.output
