"""Start, stop and empty the embedded platform.

settings -> supervisord -> parts in the order of their needs, each asked until it answers. `up` twice is harmless;
`down` leaves no process; `reset` leaves no state.
"""

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from infra.embedded import leftovers, supervisor
from infra.embedded.passwords import passwords
from infra.embedded.program import NotReady, Program
from infra.embedded.programs import programs
from infra.embedded.supervisor import Supervisor
from infra.preflight import Finding, check_running, tell
from spark_jobs.settings import Settings

ASK_EVERY = 0.25
END_SECONDS = 60
LOG_LINES = 20
STOPPED = {"STOPPED", "EXITED", "FATAL", "UNKNOWN"}
GIVEN_UP = "it died too often; supervisord has given it up"


class PlatformError(RuntimeError):
    """The platform cannot do what was asked; the message says why and what to do."""


@dataclass(frozen=True)
class Progress:
    """One step of one part: `state` is starting, ready, stopping or stopped."""

    part: str
    state: str
    seconds: float
    said: str = ""


Report = Callable[[Progress], None]


def up(settings: Settings, report: Report, wanted: Sequence[str] = (), *, also: Sequence[str] = ()) -> None:
    """Start the `wanted` parts (all but those on demand, if none is named), `also`, and what they need.

    Returns when every one of them answers; raises PlatformError when one does not.
    """
    supervisor.require(settings, "up --wait")
    every = {part.name: part for part in programs(settings)}
    names = [*(wanted or [name for name, part in every.items() if not part.on_demand]), *also]
    chosen = _with_needs(every, names)
    with _alone(settings):
        passwords(settings)
        if not supervisor.running(settings):
            _start_supervisor(settings, list(every.values()))
        elif other := _other_settings(settings):
            raise PlatformError(f"the platform runs with another {', '.join(other)}; run `tidemark down` first")
        _start(settings, chosen, report)


def down(settings: Settings, report: Report) -> list[str]:
    """Stop all parts, the last started first, then supervisord; the answer is what had to be killed."""
    supervisor.require(settings, "down")
    killed: list[str] = []
    with _alone(settings):
        if control := supervisor.running(settings):
            every = {part.name: part for part in programs(settings)}
            for depth in sorted({_depth(part, every) for part in every.values()}, reverse=True):
                _stop(settings, [part for part in every.values() if _depth(part, every) == depth], report)
            pid = int((settings.run_dir / "supervisord.pid").read_text())
            control.shutdown()
            killed = _await_end(pid)
        return [*killed, *leftovers.end(settings.home)]


def restart(settings: Settings, name: str, report: Report) -> None:
    """Stop and start one part, or bring back one that supervisord has given up."""
    supervisor.require(settings, f"restart {name}")
    parts = [part for part in programs(settings) if part.name == name]
    control = supervisor.running(settings)
    if not parts or not control:
        raise PlatformError(
            f"there is no part called {name!r}" if control else "the platform is down; run `tidemark up`"
        )
    _stop(settings, parts, report)
    _start(settings, {name: parts[0]}, report)


def reset(settings: Settings, report: Report) -> None:
    """Stop everything and remove the state: data, ledger, logs, secrets. Environments and jars stay."""
    supervisor.require(settings, "down --volumes")
    down(settings, report)
    for path in settings.state:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _with_needs(every: dict[str, Program], names: Sequence[str]) -> dict[str, Program]:
    """The named parts and, before each, what it needs, in the order of `every`."""
    needed: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in every:
            raise PlatformError(f"there is no part called {name!r}; the parts are {', '.join(every)}")
        if name not in needed:
            needed.add(name)
            waiting += every[name].needs
    return {name: part for name, part in every.items() if name in needed}


def _depth(part: Program, every: dict[str, Program]) -> int:
    """How many parts stand below this one in its longest chain of needs."""
    return 1 + max((_depth(every[need], every) for need in part.needs), default=0)


def _start_supervisor(settings: Settings, every: Sequence[Program]) -> None:
    """A fresh supervisord, after what an earlier one left behind is gone and the machine can carry the platform."""
    leftovers.end(settings.home)
    ports = {name: getattr(settings, name) for part in every for name in part.ports}
    ran_before = _settings_file(settings).exists()
    findings = check_running(settings.home, settings.host, ports, ran_before=ran_before)
    if blocking := [found for found in findings if found.blocking]:
        raise PlatformError("\n".join(map(Finding.sentence, blocking)))
    tell(findings)
    _settings_file(settings).write_text(settings.model_dump_json())
    supervisor.start(settings, every)


def _other_settings(settings: Settings) -> list[str]:
    """Names of the settings that differ from those that the running platform was started with."""
    file = _settings_file(settings)
    started = json.loads(file.read_text()) if file.exists() else {}
    return [name for name, value in json.loads(settings.model_dump_json()).items() if started.get(name, value) != value]


def _settings_file(settings: Settings) -> Path:
    return settings.run_dir / "settings.json"


def _start(settings: Settings, parts: dict[str, Program], report: Report) -> None:
    """Start each part when its needs answer; parts that do not need each other start at the same time."""
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        running: dict[str, Future[None]] = {}
        for name, part in parts.items():
            after = [running[need] for need in part.needs if need in running]
            running[name] = pool.submit(_start_one, settings, part, after, report)
    if failures := [str(error) for future in running.values() if (error := future.exception())]:
        raise PlatformError("\n".join(failures))


def _start_one(settings: Settings, part: Program, after: Sequence["Future[None]"], report: Report) -> None:
    """Start one part once those before it answer, and ask until it does."""
    if any(future.exception() for future in after):
        raise PlatformError(f"{part.name} was not started: it needs {', '.join(part.needs)}")
    control = Supervisor(settings)  # one connection a thread
    began = time.monotonic()
    report(Progress(part.name, "starting", 0.0))
    control.start(part.name)
    while True:
        took = time.monotonic() - began
        said = _ask(part, control)
        if not said:
            return report(Progress(part.name, "ready", took))
        if said == GIVEN_UP or took > part.patience:
            raise PlatformError(_failure(settings, part, said, took))
        report(Progress(part.name, "starting", took, said))
        time.sleep(ASK_EVERY)


def _ask(part: Program, control: Supervisor) -> str:
    """Why the part is not ready; empty when it is."""
    state = control.states()[part.name].state
    if state == "FATAL":
        return GIVEN_UP
    if state not in {"STARTING", "RUNNING"}:
        return f"{part.name} is in {state}"
    try:
        part.ready()
    except NotReady as reason:
        return str(reason)
    return ""


def _failure(settings: Settings, part: Program, said: str, took: float) -> str:
    file = supervisor.log_file(settings, part.name)
    tail = file.read_text(errors="replace").splitlines()[-LOG_LINES:] if file.exists() else []
    return "\n".join([f"{part.name} is not ready after {took:.0f} s: {said}. The end of {file}:", *tail])


def _stop(settings: Settings, parts: Sequence[Program], report: Report) -> None:
    """Ask all of them to stop, and wait until supervisord has seen (or made) the last one's end.

    A supervisord that an older version or another project started does not know every part.
    """
    control = Supervisor(settings)
    began = time.monotonic()
    names = {name for name, state in control.states().items() if state.state not in STOPPED}
    stopping = names & {part.name for part in parts}
    for name in stopping:
        report(Progress(name, "stopping", 0.0))
        control.stop(name)
    while stopping:
        states = control.states()
        for name in [name for name in stopping if states[name].state in STOPPED]:
            stopping.discard(name)
            report(Progress(name, "stopped", time.monotonic() - began))
        time.sleep(ASK_EVERY)


def _await_end(pid: int) -> list[str]:
    """Wait for supervisord, which first stops parts that only it knows; the answer is what had to be killed."""
    try:
        process = psutil.Process(pid)
        name = process.name()
        process.wait(timeout=END_SECONDS)
    except psutil.NoSuchProcess:
        return []
    except psutil.TimeoutExpired:
        process.kill()
        return [f"{pid} {name}"]
    return []


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """One `up` or `down` of a home at a time; a second one waits for the first."""
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings.run_dir.mkdir(exist_ok=True, mode=0o700)
    with (settings.run_dir / "lifecycle.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
