"""I10, I19: parts killed while events come in; all come back alone, nothing is lost, nothing counts twice."""

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
    return int(platform.heartbeat().get("lsn") or 0)


def kill(platform: Platform, part: str, victims: str) -> int:
    """kill -9 the part's process, the JVM below it, or both; the part's process id before."""
    pid: int = platform.status()["parts"][part]["pid"]
    process = psutil.Process(pid)
    jvm = next((child for child in process.children(recursive=True) if child.name() == "java"), None)
    assert jvm or victims == "process", f"{part} has no JVM below it"
    for victim in {"process": [process], "jvm": [jvm], "both": [process, jvm]}[victims]:
        victim.kill()
    return pid


@pytest.mark.parametrize(
    ("part", "victims"),
    [
        ("speed", "process"),
        ("speed", "jvm"),
        ("speed", "both"),
        ("thrift", "process"),
        ("broker", "process"),
        ("airflow-scheduler", "process"),
    ],
)
def test_a_part_killed_at_load_comes_back_and_the_stream_goes_on(
    platform: Platform, load: "subprocess.Popen[bytes]", part: str, victims: str
) -> None:
    before = landed(platform)
    await_true(lambda: landed(platform) > before, 120, "nothing lands before the fault")
    platform.await_ready(part, other_than=kill(platform, part, victims))
    await_true(lambda: bool(platform.status()["ready"]), 180, "not every part comes back", every=1)
    after = landed(platform)
    await_true(lambda: landed(platform) > after, 180, "nothing lands after the fault")
    assert load.poll() is None, "the generator gave up"


def test_after_the_last_fault_lag_returns_to_zero_and_verify_is_green(platform: Platform) -> None:
    await_true(lambda: platform.heartbeat().get("lag") == 0, 300, "the stream does not catch up")
    verified = platform.run("verify")
    assert verified.returncode == 0, verified.stdout
