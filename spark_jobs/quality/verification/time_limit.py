"""The time that a sample may take: what is at work when it is over ends, and is not begun any more.

seconds -> TimeLimit.looked(law, check) -> the finding, or that there was no time for it.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FrameType

from spark_jobs.quality.verification.findings import Finding, Law, Skipped, State


@dataclass(frozen=True)
class TimeLimit:
    """seconds: from now on; None: as long as it takes."""

    seconds: float | None
    began: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        return float("inf") if self.seconds is None else self.seconds - (time.monotonic() - self.began)

    @property
    def half(self) -> "TimeLimit":
        """For what comes first, so that the rest has its share."""
        return self if self.seconds is None else TimeLimit(self.seconds / 2, self.began)

    def looked(self, law: Law, check: Callable[[], Finding]) -> Finding:
        """The finding; an engine that is stopped at the end of the time may say so with any error."""
        left = self.left
        finding = law.looked(partial(_within, left, check) if left > 0 else self._over)
        return law.looked(self._over) if self.left <= 0 and finding.state is State.UNABLE else finding

    def _over(self) -> Finding:
        raise Skipped(f"the sample's {self.seconds:.0f} s were over; the next one has other views first")


class _TimeIsOver(Exception):
    """No TimeoutError: what asks over a connection would take it for its own, and ask again elsewhere."""


def _within(seconds: float, check: Callable[[], Finding]) -> Finding:
    """The alarm is for the check alone: what makes a finding of its error is not interrupted."""
    with _alarm(seconds):
        return check()


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Interrupt this thread's work then: DuckDB and sockets look for signals."""
    if not 0 < seconds < float("inf"):
        yield
        return

    def over(number: int, frame: FrameType | None) -> None:
        raise _TimeIsOver("the time is over")

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
