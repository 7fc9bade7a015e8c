"""What a part of the platform is: a command, what it needs, and how to ask whether it is ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class NotReady(Exception):
    """A part does not answer yet; the message says what it said instead."""


def nothing() -> None:
    """No preparation, no question."""


@dataclass(frozen=True)
class Program:
    """One supervised process. Times are in seconds.

    `needs` are programs that must be ready before this one starts. `ports` are names of settings. `prepare` runs in
    the new process before the command (formatting, configuration). `ready` returns, or raises NotReady.
    """

    name: str
    command: tuple[str, ...]
    ready: Callable[[], object]
    needs: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[], None] = nothing
    patience: int = 120
    stop_within: int = 20
    on_demand: bool = False
