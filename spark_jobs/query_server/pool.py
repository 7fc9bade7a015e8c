"""The door's workers: each a process that takes one statement at a time, and is ended where it takes too much.

request -> a free worker -> reply, or Refusal. A worker that was ended is followed by a new one; the door goes on. Where
the files of views or schemas change, workers that know the new ones follow; those that are busy end their statement.
"""

import asyncio
import json
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

from spark_jobs.query_server import frames
from spark_jobs.query_server.nursery import Files, Nursery, definitions
from spark_jobs.query_server.refusal import Refusal

WAIT_SECONDS = 30.0
"""How long a statement waits for a free worker."""
LOOK_SECONDS = 0.1
FOLLOW_SECONDS = 1.0
"""How often the files of views and schemas are looked at."""
RETRY_SECONDS = 10.0
"""How long until files that could not be loaded are tried again: a process starts for it."""
Reply = tuple[dict[str, Any], bytes]


@dataclass(frozen=True)
class Limits:
    """What one statement may take: seconds, and memory of its worker."""

    seconds: float
    memory_mb: int


class Worker:
    """One process, and the line to it."""

    def __init__(
        self, nursery: Nursery, process: psutil.Process, read: asyncio.StreamReader, write: asyncio.StreamWriter
    ) -> None:
        self.nursery, self._process = nursery, process
        self._read, self._write = read, write

    @classmethod
    async def start(cls, nursery: Nursery) -> "Worker":
        """A worker that is ready. Refusal where it ends before, or the machine has no more of what one takes."""
        try:
            number, read, write = await nursery.worker()
        except OSError as error:
            raise Refusal("broken", f"no worker can be started: {error}") from error
        try:
            worker = cls(nursery, psutil.Process(number), read, write)
        except (psutil.Error, OSError) as error:
            write.close()
            raise Refusal("broken", f"a worker ended as it began: {error}; the read server's log says why") from error
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
        self._tasks = set[asyncio.Task[None]]()
        self._known: Files = frozenset()

    async def open(self) -> None:
        """Start them, and wait for the first."""
        self._known = definitions()
        for _ in range(self._size):
            self._start_one()
        self._free.put_nowait(await self._free.get())
        self._background(self._follow())

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
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
        await self._back(worker)
        if "refused" in head:
            raise Refusal(head["refused"], head["reason"])
        return head, body

    async def _back(self, worker: Worker) -> None:
        """It is free; one that knows older definitions ends, and another takes its place."""
        if worker.nursery is self._nursery:
            self._free.put_nowait(worker)
        else:
            await worker.end()
            self._start_one()

    async def _follow(self) -> None:
        """Load the definitions anew when their files change; while they cannot be loaded, those of before go on."""
        while True:
            await asyncio.sleep(FOLLOW_SECONDS)
            try:
                if (now := definitions()) != self._known:
                    await self._renew()
                    self._known = now
            except (Refusal, OSError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _renew(self) -> None:
        nursery = Nursery()
        try:
            first = await Worker.start(nursery)
        except BaseException:
            nursery.close()
            raise
        before, self._nursery = self._nursery, nursery
        before.close()
        free = [self._free.get_nowait() for _ in range(self._free.qsize())]
        for worker in free or [first]:
            await worker.end()
        if free:
            self._free.put_nowait(first)
        for _ in free[1:]:
            self._start_one()

    def _start_one(self) -> None:
        self._background(self._started())

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _started(self) -> None:
        """A new worker; one that cannot start is tried again, as its cause may be gone."""
        while True:
            try:
                await self._back(await Worker.start(self._nursery))
                return
            except Refusal:
                await asyncio.sleep(1)
