"""Both ends at once: the DAGs' own tasks start the real `tidemark` command, over a ledger that it made itself."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from conftest import DAGS, ROOT, context
from tidemark_airflow import command
from tidemark_airflow.notify import FailureNotifier
from tidemark_airflow.operators import TidemarkOperator
from tidemark_airflow.run_id import pin_of, run_id_of

from spark_jobs.orchestration import interface

PYTHON = ROOT / ".venv/bin/python"
BEAT = """
import json, sys
from datetime import UTC, datetime, timedelta
from spark_jobs.ledger import store
from spark_jobs.ledger.schema import Heartbeat
at = datetime.now(UTC) - timedelta(seconds=float(sys.argv[1]))
with store.open().write() as session:
    session.merge(Heartbeat(component="speed", at=at, payload=json.loads(sys.argv[2])))
"""
PARSE = """
import json, sys
from click.testing import CliRunner
from spark_jobs.cli import main
for words in json.load(sys.stdin):
    done = CliRunner().invoke(main, [*words, "--help"])  # unknown commands and options are refused before the help
    if done.exit_code or "Show this message and exit" not in done.output:
        print(" ".join(words), done.output)
"""
RUN_IDS = ["manual__1", "scheduled__2026-01-02T00:00:00+00:00", "é", "", "--", "../..", "x" * 300]
APPROVED = {"chosen_options": ["Approve"], "responded_by_user": None}
Beat = Callable[..., None]


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(DAGS)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.setenv("TIDEMARK_KAFKA_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("TIDEMARK_DISK_ALARM_SHARE", "0")
    monkeypatch.delenv(interface.COMMAND_VARIABLE, raising=False)


@pytest.fixture
def beat() -> Beat:
    """A heartbeat in the ledger, so many seconds ago."""

    def written(seconds_ago: float, **payload: Any) -> None:
        said = json.dumps({"state": "running", "alarms": {}} | payload)
        subprocess.run([PYTHON, "-c", BEAT, str(seconds_ago), said], cwd=ROOT, check=True)

    return written


@pytest.fixture
def watch(bag: DagBag) -> TidemarkOperator:
    """The task of the DAG speed_layer; `heard` is what the command said."""
    task = bag.dags[interface.SPEED_LAYER].get_task("watch")
    task.heard = []
    task.hear = task.heard.append
    return task


def restarted(watch: TidemarkOperator) -> bool:
    """Whether `tidemark restart speed` was run; no platform is up, and it says so."""
    return any("the platform is down; run `tidemark up`" in line for line in watch.heard)


def test_a_silent_speed_application_is_restarted_and_the_run_is_red(watch: TidemarkOperator, beat: Beat) -> None:
    beat(120)
    with pytest.raises(AirflowException, match=f"exit code {interface.SPEED_SILENT};"):
        watch.execute(context())
    assert restarted(watch) and '"message": "silent for' in "\n".join(watch.heard)


def test_a_speed_application_with_an_alarm_is_left_to_people(watch: TidemarkOperator, beat: Beat) -> None:
    beat(0, alarms={"housekeeping": "disk full"})
    with pytest.raises(AirflowException, match=f"exit code {interface.ALARM_RAISED};"):
        watch.execute(context())
    assert '"message": "disk full"' in "\n".join(watch.heard) and not restarted(watch)


def test_an_alarm_that_somebody_sees_to_is_green(watch: TidemarkOperator, beat: Beat) -> None:
    """There is no Kafka here, which is an alarm of its own."""
    beat(0)
    with pytest.raises(AirflowException, match=f"exit code {interface.ALARM_RAISED};"):
        watch.execute(context())
    subprocess.run([ROOT / "tidemark", "alarms", "ack", "1", "--by", "ada"], check=True)
    beat(0)
    watch.heard.clear()
    watch.execute(context())
    assert '"acknowledged_by": "ada"' in "\n".join(watch.heard) and not restarted(watch)


def test_runs_that_wait_are_merged_into_the_one_that_begins_with_the_day_of_one_that_died(bag: DagBag) -> None:
    """Three days of a backfill: the first dies, the second builds all of them, and the others end with it."""
    plan, build = (bag.dags[interface.BATCH_LAYER].get_task(name) for name in ("plan", "build"))
    first, second, third = (context(f"backfill__{number}", f"2013-01-0{number}") for number in (1, 2, 3))
    plan.execute(first)
    for waiting in (second, third):
        with pytest.raises(AirflowRescheduleException):
            plan.execute(waiting)
    in_ledger("fail_run(sys.argv[1], 'killed')", "backfill__1")
    plan.execute(second)
    with pytest.raises(AirflowRescheduleException):
        build.execute(first)
    in_ledger("progress(sys.argv[1], 'publish')", "backfill__2")
    for task, merged in ((build, first), (plan, third)):
        with pytest.raises(AirflowSkipException):
            task.execute(merged)
    assert plan.merged_into.endswith("/dags/batch_layer/runs/backfill__2")


def test_a_step_that_is_killed_has_failed_once_airflow_tries_it_no_more_and_goes_on_when_it_is_cleared(
    bag: DagBag, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, build = (bag.dags[interface.BATCH_LAYER].get_task(name) for name in ("plan", "build"))
    at_build = context("monday", task="build")
    plan.execute(context("monday"))
    start = command.start
    with monkeypatch.context() as patch:
        patch.setattr(command, "start", lambda arguments: killed(start(arguments)))
        with pytest.raises(AirflowException, match=f"exit code -{signal.SIGKILL:d};"):
            build.execute(at_build)
    assert status("runs")["state"] == "active", "whoever is killed says nothing"
    FailureNotifier()(at_build)
    assert status("runs")["state"] == "failed" and status("runs")["error"].startswith("build was killed")
    plan.execute(context("monday"))
    assert status("runs")["state"] == "active"
    FailureNotifier()(context("tuesday"))
    assert status("stopped_plans")["run"] == run_id_of("tuesday")


def killed(process: "subprocess.Popen[str]") -> "subprocess.Popen[str]":
    process.kill()
    return process


def status(part: str) -> dict[str, Any]:
    """The newest row of a part of `tidemark batch status`."""
    said = subprocess.run([ROOT / "tidemark", "batch", "status", "--json"], check=True, capture_output=True).stdout
    row: dict[str, Any] = json.loads(said)[part][0]
    return row


def in_ledger(call: str, dag_run_id: str) -> None:
    program = f"import sys\nfrom spark_jobs.ledger import store\nstore.open().{call}"
    subprocess.run([PYTHON, "-c", program, run_id_of(dag_run_id)], cwd=ROOT, check=True)


def test_c5_a_verify_that_cannot_look_is_tried_again_and_a_broken_promise_is_red_at_once(
    bag: DagBag, tidemark: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    verify = bag.dags[interface.MAINTENANCE].get_task("verify")
    tidemark("exit 1")
    with pytest.raises(AirflowFailException, match="verify --last"):
        verify.execute(context())
    monkeypatch.delenv(interface.COMMAND_VARIABLE)
    with pytest.raises(AirflowException, match="exit code 2;"):
        verify.execute(context())  # the real command, where nothing runs


def test_c5_maintenance_asks_for_a_trim_of_what_nobody_reads(bag: DagBag) -> None:
    trim, heard = bag.dags[interface.MAINTENANCE_HOURLY].get_task("trim"), list[str]()
    trim.hear = heard.append
    trim.execute(context())
    assert heard == ["nothing to trim yet"]


def test_the_command_takes_the_words_of_every_task(bag: DagBag) -> None:
    tasks = [task for dag in bag.dags.values() for task in dag.tasks if isinstance(task, TidemarkOperator)]
    words = [task.arguments_of(context(key="2013-01-01", pulled=APPROVED)) for task in tasks]
    words += [remedy for task in tasks for remedy in task.remedies.values()]
    parsed = subprocess.run(
        [PYTHON, "-c", PARSE], input=json.dumps(words), cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert len(words) > len(tasks) > 0 and parsed.stdout == ""


@pytest.mark.parametrize("dag_run_id", RUN_IDS)
def test_every_dag_run_names_a_run_and_a_pin_that_the_command_takes(dag_run_id: str) -> None:
    assert interface.RUN_ID.fullmatch(run_id_of(dag_run_id))
    assert interface.PIN.fullmatch(pin_of(dag_run_id))
