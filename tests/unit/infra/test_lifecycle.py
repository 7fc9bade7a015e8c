"""The end of a platform, also of one that other code started: `down` needs no part that supervisord does not know."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from infra.embedded import lifecycle, supervisor
from infra.embedded.programs import programs
from infra.embedded.supervisor import State
from spark_jobs.settings import Settings

UNKNOWN_TO_IT = {"query", "generator"}


class Older:
    """A supervisord that was started before some of today's parts were written."""

    def __init__(self, settings: Settings) -> None:
        self.running = {part.name for part in programs(settings)} - UNKNOWN_TO_IT
        self.known = sorted(self.running)
        self.is_shut = False

    def states(self) -> dict[str, State]:
        said = {name: "RUNNING" if name in self.running else "STOPPED" for name in self.known}
        return {name: State(name, state, 1, 0.0, "") for name, state in said.items()}

    def stop(self, name: str) -> None:
        self.running.remove(name)

    def shutdown(self) -> None:
        self.is_shut = True


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def test_down_ends_a_platform_that_does_not_know_todays_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = Settings(home=tmp_path)
    older = Older(here)
    monkeypatch.setattr(lifecycle, "ASK_EVERY", 0.0)
    monkeypatch.setattr(lifecycle, "Supervisor", lambda _: older)
    monkeypatch.setattr(supervisor, "running", lambda _: older)
    here.run_dir.mkdir()
    (here.run_dir / "supervisord.pid").write_text("999999999\n")
    assert lifecycle.down(here, lambda _: None) == []
    assert (older.running, older.is_shut) == (set(), True)


def test_a_supervisor_that_does_not_end_is_killed_and_named(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = psutil.Process(sleeper.pid).name()
    monkeypatch.setattr(lifecycle, "END_SECONDS", 0.01)
    assert lifecycle._await_end(sleeper.pid) == [f"{sleeper.pid} {name}"]
    assert sleeper.wait(10) != 0
