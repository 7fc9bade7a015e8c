"""kill -9 of any process: the supervisor brings the part back, and nothing of the old one lives on."""

import psutil
import pytest

from tests.platform import Platform

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


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_comes_back_alone(platform: Platform, part: str) -> None:
    before = platform.processes(part)
    pid = platform.status()["parts"][part]["pid"]
    psutil.Process(pid).kill()
    platform.await_ready(part, other_than=pid)
    assert [old for old in before if old.is_running() and old.status() != psutil.STATUS_ZOMBIE] == []


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
