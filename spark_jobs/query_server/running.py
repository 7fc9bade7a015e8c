"""The statements that are being answered, and how somebody ends one.

request + user -> a task of its own -> reply; a task that was ended refuses.
"""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from spark_jobs.query_server.pool import Pool, Reply
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.users import User

log = logging.getLogger("tidemark.query")


@dataclass(frozen=True)
class Statement:
    user: str
    request: Mapping[str, Any]
    since: datetime
    task: "asyncio.Task[Reply]"

    def json(self) -> dict[str, Any]:
        return {"user": self.user, "since": self.since.isoformat(), **self.request}


class Running:
    """By numbers that are given once."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._numbers = pool, itertools.count(1)
        self.statements: dict[int, Statement] = {}

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """While the door is served."""
        await self._pool.open()
        try:
            yield
        finally:
            await self._pool.close()

    async def ask(self, user: User, request: Mapping[str, Any]) -> Reply:
        """The pool's reply. Refusal. The log says who asked how long, not what: a statement may name people."""
        number, began = next(self._numbers), time.monotonic()
        task = asyncio.create_task(self._pool.ask(request))
        self.statements[number] = Statement(user.name, request, datetime.now(UTC), task)
        outcome = "answered"
        try:
            return await asyncio.shield(task)
        except Refusal as refusal:
            outcome = refusal.kind
            raise
        except asyncio.CancelledError:
            outcome = "ended"
            if not task.cancelled():  # the client's request was given up, not the statement
                task.cancel()
                raise
            raise Refusal("too_long", "an administrator has ended the statement") from None
        finally:
            del self.statements[number]
            seconds = time.monotonic() - began
            log.info("%s %s: %s after %.3f s", user.name, request["ask"], outcome, seconds)

    def end(self, number: int) -> None:
        """Refusal where no such statement is running."""
        if number not in self.statements:
            raise Refusal("unknown", f"no statement has the number {number} now: GET /statements lists them")
        self.statements[number].task.cancel()
