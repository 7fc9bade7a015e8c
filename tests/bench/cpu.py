"""CPU seconds and memory of some processes over a span that is known only afterwards.

processes -> four samples a second, in a thread -> `Meter.span(began_at, ended_at)`
"""

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil

EVERY = 0.25


@dataclass(frozen=True)
class Span:
    """What something took; `cpu_seconds` of all its processes. MB: the most at a time, of all, and of one worker."""

    seconds: float
    cpu_seconds: float
    mb: float = 0.0
    worker_mb: float = 0.0


class Meter:
    """While it is open it samples; processes that have ended count through the parents that waited for them."""

    def __init__(self, processes: Callable[[], Iterable[psutil.Process]]) -> None:
        self._processes = processes
        self._samples: list[tuple[float, float]] = []
        self._memory: list[tuple[float, float, float]] = []
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._closed.set()
        self._thread.join()
        self._sample()

    def span(self, began_at: float, ended_at: float) -> Span:
        """From one moment to another (seconds since the epoch); between samples, CPU time is interpolated."""
        memory = [(mb, worker) for at, mb, worker in self._memory if began_at <= at <= ended_at]
        most, worker = (max(of, default=0.0) for of in zip(*memory, strict=True)) if memory else (0.0, 0.0)
        return Span(ended_at - began_at, self._at(ended_at) - self._at(began_at), most, worker)

    def _at(self, moment: float) -> float:
        samples = self._samples
        after = min(max(bisect_left(samples, (moment, 0.0)), 1), len(samples) - 1)
        (t0, cpu0), (t1, cpu1) = samples[after - 1], samples[after]
        return cpu0 + (cpu1 - cpu0) * min(max((moment - t0) / (t1 - t0), 0.0), 1.0)

    def _go_on(self) -> None:
        while not self._closed.wait(EVERY):
            self._sample()

    def _sample(self) -> None:
        """What a process had spent when it was last seen stays spent."""
        now, before = time.time(), self._samples[-1][1] if self._samples else 0.0
        processes = list(self._processes())
        self._samples.append((now, max(before, sum(map(_spent, processes)))))
        resident = [_resident(process) for process in processes]
        workers = [mb for mb, is_worker in resident if is_worker]
        self._memory.append((now, sum(mb for mb, _ in resident), max(workers, default=0.0)))


def _spent(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return sum((times.user, times.system, times.children_user, times.children_system))


def _resident(process: psutil.Process) -> tuple[float, bool]:
    """Its resident memory, and whether it is a worker of Spark's tasks."""
    try:
        return process.memory_info().rss / 1e6, "pyspark.worker" in process.cmdline()
    except psutil.NoSuchProcess:
        return 0.0, False
