"""How fast a stream of blocks goes out: as fast as it is taken, or each record when it is due.

blocks -> fast or paced -> send
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator

from spark_jobs.sample.block import Block

TICK_SECONDS = 0.1
"""How long a due record waits at most: each tick sends a batch of its own to every partition."""

Send = Callable[[Block], None]


def fast(stream: Iterator[Block], send: Send, stop: threading.Event) -> None:
    """Everything, as fast as `send` takes it, until `stop`."""
    for block in stream:
        if stop.is_set():
            return
        send(block)


def paced(stream: Iterator[Block], send: Send, stop: threading.Event, start_ms: int) -> None:
    """Each record when it is due, where `start_ms` is now; what could not be sent in time follows at once."""
    begun = time.monotonic()
    under_way: list[tuple[Block, int]] = []  # a block, and how many of its records went out
    ahead = next(stream, None)
    while (ahead or under_way) and not stop.is_set():
        now = start_ms + int((time.monotonic() - begun) * 1000)
        while ahead and ahead.due[0] <= now:
            under_way.append((ahead, 0))
            ahead = next(stream, None)
        under_way = [(block, _send_due(block, gone, now, send)) for block, gone in under_way]
        under_way = [(block, gone) for block, gone in under_way if gone < len(block)]
        stop.wait(TICK_SECONDS)


def _send_due(block: Block, gone: int, now: int, send: Send) -> int:
    due = bisect_right(block.due, now, gone)
    if due > gone:
        send(block[gone:due])
    return due
