"""What outlives its part is found by its mark."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator

import psutil
import pytest

from infra.embedded import leftovers
from spark_jobs.settings import Settings


@pytest.fixture
def orphan(here: Settings) -> Iterator[psutil.Process]:
    """A process of the part `x` in a session of its own, as Airflow's tasks are."""
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)", str(uuid.uuid4())]
    mark = {leftovers.MARK: "x", "TIDEMARK_HOME": str(here.home)}
    started = subprocess.Popen(command, env={**os.environ, **mark}, start_new_session=True, stdout=subprocess.PIPE)
    assert started.stdout and started.stdout.readline()
    yield psutil.Process(started.pid)
    started.kill()
    started.wait()


def test_what_outlives_its_part_is_found_by_its_mark_and_ended(here: Settings, orphan: psutil.Process) -> None:
    assert [found.pid for found in leftovers.marked(here.home, "x")] == [orphan.pid]
    assert leftovers.end(here.home, "x")[0].startswith(f"{orphan.pid} ")
    assert list(leftovers.marked(here.home)) == []


def test_other_parts_and_other_homes_are_left_alone(here: Settings, orphan: psutil.Process) -> None:
    assert leftovers.end(here.home, "y") == []
    assert leftovers.end(here.home / "other") == []
    assert orphan.is_running() and orphan.status() != psutil.STATUS_ZOMBIE
