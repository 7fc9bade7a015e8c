"""I11, B5: two speed applications on one log, with run folders of their own; one of them lands."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from spark_jobs.settings import ROOT
from tests.faults.test_at_load import landed, load
from tests.platform import Platform, await_true

__all__ = ["load"]
pytestmark = [pytest.mark.fault, pytest.mark.platform]


@pytest.fixture
def elsewhere(platform: Platform, tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A second application, as if another machine had the same warehouse, Kafka and ledger."""
    own, first = tmp_path / "home", platform.settings
    shared = {
        "HOME": str(own),
        "WAREHOUSE_URI": first.warehouse,
        "KAFKA_SERVERS": first.kafka,
        "METASTORE_URI": first.metastore,
        "LEDGER_URL": f"sqlite+pysqlite:///{first.home / 'ledger.db'}",
    }
    environment = platform.environment | {f"TIDEMARK_{name}": value for name, value in shared.items()}
    command = [sys.executable, "-m", "spark_jobs.speed"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, env=environment, cwd=ROOT, stdout=log, stderr=log) as process,
    ):
        yield process
        if process.poll() is None:
            for one in (*psutil.Process(process.pid).children(recursive=True), process):
                one.kill()


def first_applications(platform: Platform) -> list[psutil.Process]:
    pid = platform.status()["parts"]["speed"]["pid"]
    return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]


def test_i11_a_second_application_waits_and_takes_over_only_from_one_that_stands_still(
    platform: Platform, load: "subprocess.Popen[bytes]", elsewhere: "subprocess.Popen[bytes]"
) -> None:
    mine = platform.heartbeat()["pid"]
    assert elsewhere.wait(180) == 1, "it gives up, as the first one lives"
    assert platform.heartbeat()["pid"] == mine and platform.heartbeat()["state"] == "running"


def test_i11_a_paused_application_that_wakes_after_a_takeover_lands_nothing(
    platform: Platform, load: "subprocess.Popen[bytes]", elsewhere: "subprocess.Popen[bytes]"
) -> None:
    paused = first_applications(platform)
    epoch = platform.heartbeat()["epoch"]
    for process in paused:
        process.send_signal(signal.SIGSTOP)
    try:
        await_true(lambda: platform.heartbeat().get("epoch", 0) > epoch, 240, "nobody takes over", every=1)
        before = landed(platform)
        await_true(lambda: landed(platform) > before, 180, "the second application lands nothing", every=1)
    finally:
        for process in paused:
            process.send_signal(signal.SIGCONT)
    _, alive = psutil.wait_procs(paused[:1], timeout=120)
    assert not alive, "it goes on as if nothing had happened"
    after = landed(platform)
    await_true(lambda: landed(platform) > after, 120, "the second application was disturbed", every=1)
    os.kill(elsewhere.pid, signal.SIGTERM)
    elsewhere.wait(60)
    await_true(lambda: platform.heartbeat()["pid"] != elsewhere.pid, 240, "the first does not take it back", every=1)


def test_i11_the_log_of_both_has_no_hole_and_counts_nothing_twice(platform: Platform) -> None:
    await_true(lambda: platform.heartbeat().get("lag") == 0, 300, "the stream does not catch up", every=1)
    verified = platform.run("verify")
    assert verified.returncode == 0, verified.stdout
