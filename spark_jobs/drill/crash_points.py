"""The speed application, which kills itself where it is told: before or after each of its commits.

`python -m spark_jobs.drill.crash_points` runs it as `python -m spark_jobs.speed` does. Once a file `run/crash` in its
home names a point, SIGKILL comes there, in the next micro-batch that has records; the file is gone by then.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import chain, cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from spark_jobs.settings import Settings, settings

IN_PROCESS = (
    "before landing in process",
    "after landing in process",
    "before partials in process",
    "after partials in process",
)
BY_WORKERS = (
    "before landing by workers",
    "after landing by workers",
    "before partials by workers",
    "after partials by workers",
)


def chosen(number: int, seed: int) -> list[str]:
    """Points by turns of both executors."""
    draw = Random(seed)
    both = zip(*(draw.sample(points, len(points)) for points in (IN_PROCESS, BY_WORKERS)), strict=True)
    return list(islice(cycle(chain.from_iterable(both)), number))


def crash_file(here: Settings) -> Path:
    return here.run_dir / "crash"


def arm(here: Settings, point: str) -> None:
    """The application of this home ends at that point."""
    written = crash_file(here).with_suffix(".new")
    written.write_text(point, "utf-8")
    written.rename(crash_file(here))


def main() -> int:
    from spark_jobs.speed import app, land
    from spark_jobs.speed.__main__ import main as run
    from spark_jobs.speed.distributed import StagedBatch
    from spark_jobs.speed.in_process import InProcessBatch, InProcessWriter

    points = iter((*IN_PROCESS, *BY_WORKERS))
    armed: list[str] = []
    of_layer: Any = app.SpeedLayer
    commits: list[tuple[Any, str]] = [(InProcessWriter, "land"), (InProcessBatch, "commit")]
    for place, name in [*commits, (land, "commit"), (StagedBatch, "commit")]:
        setattr(place, name, _watched(getattr(place, name), next(points), next(points), armed))
    of_layer.micro_batch = _arming(of_layer.micro_batch, armed)
    return run()


def _watched(real: Callable[..., Any], before: str, after: str, armed: list[str]) -> Callable[..., Any]:
    """The same commit, with a point before and one after it."""

    def commit(*arguments: Any, **named: Any) -> Any:
        _crash(before, armed)
        done = real(*arguments, **named)
        _crash(after, armed)
        return done

    return commit


def _arming(real: Callable[..., None], armed: list[str]) -> Callable[..., None]:
    """A micro-batch looks first whether it is the one to crash in."""

    def micro_batch(layer: Any, batch: Any, batch_id: int) -> None:
        file = crash_file(settings())
        if file.exists() and not batch.isEmpty():
            armed.append(file.read_text("utf-8"))
            file.unlink()
        real(layer, batch, batch_id)

    return micro_batch


def _crash(point: str, armed: list[str]) -> None:
    if point in armed:
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
