"""What `tidemark status` says: each part's state, answer, doors and memory.

settings -> supervisord's states + each part's own answer -> Status. Of parts in other containers, their answers alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from infra.embedded import leftovers, supervisor
from infra.embedded.program import NotReady, Program
from infra.embedded.programs import programs
from infra.embedded.supervisor import State
from spark_jobs.settings import Settings


@dataclass(frozen=True)
class PartStatus:
    """One part now; `said` is why it does not answer."""

    name: str
    state: str
    ready: bool
    said: str
    pid: int | None
    uptime_seconds: int
    memory_mb: int
    doors: dict[str, str]
    on_demand: bool


@dataclass(frozen=True)
class Status:
    """The platform of one home; it is ready when every part that should run answers."""

    home: str
    supervisor: bool
    parts: list[PartStatus]

    @property
    def ready(self) -> bool:
        return all(part.ready or (part.on_demand and part.state == "STOPPED") for part in self.parts)

    def json(self) -> dict[str, Any]:
        return {"ready": self.ready, **asdict(self)}


def status(settings: Settings) -> Status:
    """Ask supervisord and every running part; takes as long as the slowest answer."""
    every = programs(settings)
    if settings.supervisor == "compose":
        lasting = [part for part in every if not part.on_demand]
        return Status(str(settings.home), False, _all(_elsewhere, lasting))
    control = supervisor.running(settings)
    states = control.states() if control else {}
    parts = _all(lambda part: _part(settings, part, states.get(part.name)), every)
    return Status(str(settings.home), control is not None, parts)


def _all(ask: Callable[[Program], PartStatus], parts: list[Program]) -> list[PartStatus]:
    with ThreadPoolExecutor(max_workers=len(parts)) as pool:
        return list(pool.map(ask, parts))


def _elsewhere(part: Program) -> PartStatus:
    """A part in another container: what it answers over the network is all that is known of it here."""
    said = _answer(part)
    state = "SILENT" if said else "RUNNING"
    return PartStatus(part.name, state, not said, said, None, 0, 0, {}, part.on_demand)


def _part(settings: Settings, part: Program, state: State | None) -> PartStatus:
    lives = state is not None and state.state == "RUNNING"
    said = _answer(part) if lives else (state.said if state else "")
    return PartStatus(
        name=part.name,
        state=state.state if state else "STOPPED",
        ready=lives and not said,
        said=said,
        pid=state.pid if state and lives else None,
        uptime_seconds=int(time.time() - state.started_at) if state and lives else 0,
        memory_mb=_memory_mb(leftovers.marked(settings.home, part.name)) if lives else 0,
        doors={name: f"{settings.own_name}:{getattr(settings, name)}" for name in part.ports},
        on_demand=part.on_demand,
    )


def _answer(part: Program) -> str:
    try:
        part.ready()
    except NotReady as reason:
        return str(reason)
    return ""


def _memory_mb(processes: Iterable[psutil.Process]) -> int:
    """Proportional set size where the system tells it: forked processes share pages."""
    total = 0
    for process in processes:
        try:
            used = process.memory_full_info()
            total += getattr(used, "pss", None) or used.rss
        except psutil.Error:
            continue
    return total // 2**20
