"""The `tidemark` command as a process of a task: its lines, its environment, and how it ends."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException
from conftest import context
from tidemark_airflow import command
from tidemark_airflow.operators import TidemarkOperator

Put = Callable[[str], Path]


def test_a_missing_command_says_which_setting_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_COMMAND", str(tmp_path / "nowhere"))
    with pytest.raises(AirflowFailException, match="TIDEMARK_COMMAND"):
        TidemarkOperator(task_id="watch", arguments=("speed",)).execute(context())


def test_lines_arrive_while_the_command_runs(tidemark: Put) -> None:
    folder = tidemark(
        "echo first; echo error >&2; for i in {1..200}; do [ -e go ] && break; sleep 0.05; done; [ -e go ] && echo last"
    )
    seen: list[str] = []

    def sink(line: str) -> None:
        seen.append(line)
        if len(seen) == 2:
            (folder / "go").touch()

    assert command.follow(command.start([]), sink) == 0
    assert seen == ["first", "error", "last"]


def test_the_command_sees_nothing_of_airflow(tidemark: Put, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "secret")
    monkeypatch.setenv("TIDEMARK_HOME", "/somewhere")
    seen: list[str] = []
    tidemark("env")
    command.follow(command.start([]), seen.append)
    assert "TIDEMARK_HOME=/somewhere" in seen
    assert not [line for line in seen if "secret" in line or "AIRFLOW" in line]


def test_killing_the_task_ends_all_that_the_command_started(tidemark: Put) -> None:
    stubborn = 'trap "" TERM\n(for i in {1..300}; do sleep 0.1; done) & echo $! > child.tmp\nmv child.tmp child\nwait'
    folder = tidemark(stubborn)
    task = TidemarkOperator(task_id="build", arguments=("batch",))
    failed: list[BaseException] = []
    run = lambda: _catch(lambda: task.execute.__wrapped__(task, context()), failed)  # noqa: E731
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    # Airflow calls on_kill in the thread of the task, which then knows what it has started.
    _until(lambda: task._process is not None and (folder / "child").exists())
    task.on_kill()
    thread.join(10)
    assert not thread.is_alive() and len(failed) == 1
    _until(lambda: not _lives(int((folder / "child").read_text())))


def _catch(call: Callable[[], None], into: list[BaseException]) -> None:
    try:
        call()
    except Exception as error:
        into.append(error)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z" if Path("/proc").exists() else True


def _until(holds: Callable[[], object], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
