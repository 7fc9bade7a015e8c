"""I10, I19: parts killed while events come in; all come back alone, nothing is lost, nothing counts twice."""

import json
import signal
import subprocess
from collections.abc import Iterator

import psutil
import pytest

from spark_jobs.settings import ROOT
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.fault, pytest.mark.platform]
RATE = "500"


@pytest.fixture
def load(platform: Platform) -> Iterator["subprocess.Popen[bytes]"]:
    """A generator beside the platform, stopped in time so that its ledger is whole."""
    command = [ROOT / "tidemark", "generate", "--rate", RATE, "--seed", "99"]
    with subprocess.Popen(command, env=platform.environment, stdout=subprocess.DEVNULL) as generator:
        yield generator
        generator.send_signal(signal.SIGTERM)
        assert generator.wait(120) == 0


def landed(platform: Platform) -> int:
    return int(json.loads(platform.run("speed", "status", "--json").stdout).get("lsn") or 0)


def kill(platform: Platform, part: str, *, jvm: bool) -> int:
    """kill -9 the part, or the JVM below it; the part's process id before."""
    pid: int = platform.status()["parts"][part]["pid"]
    children = psutil.Process(pid).children(recursive=True)
    victim = next(child for child in children if child.name() == "java") if jvm else psutil.Process(pid)
    victim.kill()
    return pid


@pytest.mark.parametrize(
    ("part", "jvm"),
    [("speed", False), ("speed", True), ("thrift", False), ("broker", False), ("airflow-scheduler", False)],
)
def test_a_part_killed_at_load_comes_back_and_the_stream_goes_on(
    platform: Platform, load: "subprocess.Popen[bytes]", part: str, jvm: bool
) -> None:
    before = landed(platform)
    await_true(lambda: landed(platform) > before, 120, "nothing lands before the fault")
    platform.await_ready(part, other_than=kill(platform, part, jvm=jvm))
    after = landed(platform)
    await_true(lambda: landed(platform) > after, 180, "nothing lands after the fault")


def test_after_the_last_fault_lag_returns_to_zero_and_verify_is_green(platform: Platform) -> None:
    def lag() -> int | None:
        return json.loads(platform.run("speed", "status", "--json").stdout).get("lag")

    await_true(lambda: lag() == 0, 300, "the stream does not catch up")
    platform.tidemark("verify")
