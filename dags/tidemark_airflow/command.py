"""Runs the `tidemark` command: an argument list in, its lines to a sink, its exit code out.

The command gets a process group of its own, so that stopping a task stops everything that the command started, and
an environment without Airflow's settings and secrets.
"""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from spark_jobs.orchestration.interface import COMMAND_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
GRACE_SECONDS = 3.0  # Airflow kills the task's own process 5 s after it asked it to stop
HIDDEN_FROM_COMMAND = ("AIRFLOW", "_AIRFLOW", "__AIRFLOW", "PYTHON", "VIRTUAL_ENV")


def command_path() -> str:
    """The launcher: TIDEMARK_COMMAND, else `tidemark` in the root of the clone that this file is in."""
    return os.environ.get(COMMAND_VARIABLE) or str(ROOT / "tidemark")


def start(arguments: Sequence[str]) -> subprocess.Popen[str]:
    """The command at work; stdout and stderr come as one stream of lines."""
    return subprocess.Popen(
        [command_path(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=command_environment(os.environ),
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )


def answer(arguments: Sequence[str]) -> str:
    """What the command prints, where it ends well; its complaints go to the log of the task."""
    done = subprocess.run(
        [command_path(), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=command_environment(os.environ),
    )
    return done.stdout


def follow(process: subprocess.Popen[str], sink: Callable[[str], None]) -> int:
    """Pass each line on as it comes; the exit code, negative after a signal."""
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            sink(line.rstrip())
    return process.wait()


def stop(process: subprocess.Popen[str], grace_seconds: float = GRACE_SECONDS) -> None:
    """End the command's whole process group: asked first, then killed. Harmless once it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def command_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without Airflow's own variables, some of which are secrets, and without its Python environment."""
    return {name: value for name, value in environment.items() if not name.startswith(HIDDEN_FROM_COMMAND)}


def _end_with_parent() -> None:
    """Linux: the command is told to stop when the task's process dies without having said so (kill -9)."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
