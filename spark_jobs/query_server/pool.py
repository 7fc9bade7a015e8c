"""The door's workers: each a process that takes one statement at a time, and is ended where it takes too much.

request -> a free worker -> reply, or Refusal. A worker that was ended is followed by a new one; the door goes on.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from spark_jobs.query_server import frames
from spark_jobs.query_server.nursery import Nursery
from spark_jobs.query_server.refusal import Refusal

WAIT_SECONDS = 30.0
"""How long a statement waits for a free worker."""
LOOK_SECONDS = 0.1
Reply = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class Limits:
    """What one statement may take: seconds, and memory of its worker."""

    seconds: float
    memory_mb: int


class Worker:
    """One process, and the line to it."""

    def __init__(self, number: int, read: asyncio.StreamReader, write: asyncio.StreamWriter) -> None:
        self._process = psutil.Process(number)
        self._read, self._write = read, write

    @classmethod
    async def start(cls, nursery: Nursery) -> "Worker":
        """A worker that is ready. Refusal where it ends before."""
        worker = cls(*await nursery.worker())
        try:
            await worker._reply()
        except BaseException:
            await worker.end()
            raise
        return worker

    async def ask(self, request: Mapping[str, Any], limits: Limits) -> Reply:
        """The reply, or Refusal; after one that is no reply of its own the worker has ended."""
        self._write.write(frames.framed(request))
        reply = asyncio.ensure_future(self._reply())
        try:
            await self._watch(reply, limits)
            return await reply
        except BaseException:
            reply.cancel()
            await self.end()
            raise

    async def end(self) -> None:
        with suppress(psutil.NoSuchProcess):
            self._process.kill()
        self._write.close()

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
            return int(self._process.memory_info().rss) >> 20
        except psutil.NoSuchProcess:
            return 0  # the end of its output says the same, in a moment

    async def _reply(self) -> Reply:
        try:
            lengths = await self._read.readexactly(frames.LENGTHS.size)
            head, body = frames.LENGTHS.unpack(lengths)
            said: dict[str, Any] = json.loads(await self._read.readexactly(head))
            return said, await self._read.readexactly(body)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise Refusal("broken", "the worker of the statement ended; the read server's log says why") from error


class Pool:
    """So many workers; a request waits for the first that is free."""

    def __init__(self, size: int, limits: Limits) -> None:
        self._size, self.limits = size, limits
        self._free: asyncio.Queue[Worker] = asyncio.Queue()
        self._nursery = Nursery()
        self._starting = set[asyncio.Task[None]]()

    async def open(self) -> None:
        """Start them, and wait for the first."""
        for _ in range(self._size):
            self._start_one()
        self._free.put_nowait(await self._free.get())

    async def close(self) -> None:
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        while not self._free.empty():
            await self._free.get_nowait().end()
        self._nursery.close()

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
                self._free.put_nowait(await Worker.start(self._nursery))
                return
            except Refusal:
                await asyncio.sleep(1)
