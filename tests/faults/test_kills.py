"""kill -9 of any process: the supervisor brings the part back, and nothing of the old one lives on."""

import os
import subprocess
from typing import Any

import psutil
import pytest

from infra.embedded import airflow
from infra.embedded.supervisor import Supervisor
from spark_jobs.orchestration.interface import SPEED_LAYER
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.fault]

PARTS = (
    "broker",
    "metastore",
    "thrift",
    "speed",
    "airflow-api",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
)
BEYOND = "Client.request', this is the 6th time calling it"
"""In the scheduler's log; a task of Airflow's own settings asks five times."""


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_comes_back_alone(platform: Platform, part: str) -> None:
    before = platform.processes(part)
    pid = platform.status()["parts"][part]["pid"]
    psutil.Process(pid).kill()
    platform.await_ready(part, other_than=pid)
    assert [old for old in before if old.is_running() and old.status() != psutil.STATUS_ZOMBIE] == []


def test_a_task_that_begins_while_the_api_server_is_away_waits_for_it(platform: Platform) -> None:
    """At each start the scheduler may be up first; what it began then was red before it had begun."""
    platform.pause(SPEED_LAYER)
    run = platform.airflow(f"/dags/{SPEED_LAYER}/dagRuns", {"logical_date": None})["dag_run_id"]
    supervisor, part = Supervisor(platform.settings), "airflow-api"
    log = platform.settings.log_dir / "airflow-scheduler.log"
    supervisor.stop(part)
    await_true(lambda: supervisor.states()[part].state == "STOPPED", 60, "the API server does not stop")
    unpause = [str(airflow.BIN / "airflow"), "dags", "unpause", SPEED_LAYER]
    before = log.read_text().count(BEYOND)
    subprocess.run(unpause, env={**os.environ, **airflow.environment(platform.settings)}, check=True)
    await_true(lambda: log.read_text().count(BEYOND) > before, 120, "the task gave up, or has not begun")
    supervisor.start(part)
    await_true(lambda: platform.status()["ready"], 180, "the platform is not ready")

    def task() -> dict[str, Any]:
        (found,) = platform.airflow(f"/dags/{SPEED_LAYER}/dagRuns/{run}/taskInstances")["task_instances"]
        return dict(found)

    await_true(lambda: task()["state"] in ("success", "failed"), 180, f"{run} does not end", every=1)
    assert task()["start_date"] is not None, "green, or red by what it has seen"


@pytest.mark.parametrize("part", ["metastore", "speed"])
def test_a_part_whose_jvm_is_killed_comes_back_alone(platform: Platform, part: str) -> None:
    pid = platform.status()["parts"][part]["pid"]
    (jvm,) = [child for child in psutil.Process(pid).children() if child.name() == "java"]
    jvm.kill()
    platform.await_ready(part, other_than=pid)
    assert not psutil.pid_exists(pid)


def test_what_a_killed_supervisor_leaves_behind_is_ended_by_the_next_up(platform: Platform) -> None:
    pid = int((platform.settings.run_dir / "supervisord.pid").read_text())
    before = platform.processes()
    psutil.Process(pid).kill()
    assert not platform.status()["supervisor"]
    platform.tidemark("up")
    assert platform.status()["ready"]
    assert not any(old.is_running() for old in before)
