"""The door's workers: each a process that takes one statement at a time, and is ended where it takes too much.

request -> a free worker -> reply, or Refusal. A worker that was ended is followed by a new one; the door goes on.
"""

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from spark_jobs.query_server import frames
from spark_jobs.query_server.refusal import Refusal

WAIT_SECONDS = 30.0
"""How long a statement waits for a free worker."""
LOOK_SECONDS = 0.1
COMMAND = (sys.executable, "-m", "spark_jobs.query_server.worker")
Reply = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class Limits:
    """Of one statement: seconds, and the memory that its worker may take for it."""

    seconds: float
    memory_mb: int


class Worker:
    """One process; `busy_with` is what it answers now."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._memory = psutil.Process(process.pid)

    @classmethod
    async def start(cls) -> "Worker":
        """A worker that has loaded what it needs. Refusal where it ends before."""
        pipe = asyncio.subprocess.PIPE
        worker = cls(await asyncio.create_subprocess_exec(*COMMAND, stdin=pipe, stdout=pipe))
        try:
            await worker._reply()
        except BaseException:
            await worker.end()
            raise
        return worker

    async def ask(self, request: Mapping[str, Any], limits: Limits) -> Reply:
        """The reply, or Refusal; after one that is no reply of its own the worker has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(frames.framed(request))
        reply = asyncio.ensure_future(self._reply())
        try:
            await self._watch(reply, limits)
            return await reply
        except BaseException:
            reply.cancel()
            await self.end()
            raise

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _watch(self, reply: "asyncio.Future[Reply]", limits: Limits) -> None:
        """Wait for the reply, and refuse where it takes longer or more than it may."""
        before, until = self._memory_mb(), time.monotonic() + limits.seconds
        while not (await asyncio.wait([reply], timeout=LOOK_SECONDS))[0]:
            if time.monotonic() > until:
                long = f"the statement took longer than {limits.seconds:g} s and was ended"
                raise Refusal("too_long", f"{long}: TIDEMARK_QUERY_SECONDS is the limit")
            if self._memory_mb() - before > 2 * limits.memory_mb:  # the engine's own limit, and as much for the rows
                hint = "TIDEMARK_QUERY_MEMORY_MB is the limit; ask for fewer rows, or by `--engine spark`"
                raise Refusal("out_of_memory", f"the statement took too much memory and was ended: {hint}")

    def _memory_mb(self) -> int:
        try:
            return int(self._memory.memory_info().rss) >> 20
        except psutil.NoSuchProcess:
            return 0  # the end of its output says the same, in a moment

    async def _reply(self) -> Reply:
        assert self._process.stdout is not None
        try:
            lengths = await self._process.stdout.readexactly(frames.LENGTHS.size)
            head, body = frames.LENGTHS.unpack(lengths)
            said: dict[str, Any] = json.loads(await self._process.stdout.readexactly(head))
            return said, await self._process.stdout.readexactly(body)
        except asyncio.IncompleteReadError as error:
            raise Refusal("broken", "the worker of the statement ended; the read server's log says why") from error


class Pool:
    """So many workers; a request waits for the first that is free."""

    def __init__(self, size: int, limits: Limits) -> None:
        self._size, self.limits = size, limits
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        self._starting = set[asyncio.Task[None]]()

    async def open(self) -> None:
        """Start the first and wait for it; the others follow while it answers."""
        self._start_one()
        self._free.put_nowait(await self._free.get())
        for _ in range(self._size - 1):
            self._start_one()

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        while not self._free.empty():
            await self._free.get_nowait().end()

    async def ask(self, request: Mapping[str, Any]) -> Reply:
        """What a worker replies. Refusal: its own, or that of a limit."""
        try:
            worker = await asyncio.wait_for(self._free.get(), WAIT_SECONDS)
        except TimeoutError as error:
            hint = "TIDEMARK_QUERY_STATEMENTS is how many are answered at once"
            raise Refusal("busy", f"others are asking; none of them ended within {WAIT_SECONDS:g} s: {hint}") from error
        try:
            head, body = await worker.ask(request, self.limits)
        except BaseException:
            self._start_one()
            raise
        self._free.put_nowait(worker)
        if "refused" in head:
            raise Refusal(head["refused"], head["reason"])
        return head, body

    def _start_one(self) -> None:
        task = asyncio.ensure_future(self._started())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _started(self) -> None:
        """A new worker; one that cannot start is tried again, as its cause may be gone."""
        while True:
            try:
                self._free.put_nowait(await Worker.start())
                return
            except Refusal:
                await asyncio.sleep(1)
