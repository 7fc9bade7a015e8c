"""A worker that dies, or takes too much memory, is named and followed by another; the reply of the next is its own."""

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from spark_jobs.query_server import nursery, pool
from spark_jobs.query_server.pool import Limits, Pool
from spark_jobs.query_server.refusal import Refusal

STAND_IN = """
import os, time
from spark_jobs.query_server.worker import fork_for_each_socket
def reply(request):
    if request["do"] == "die":
        os._exit(1)
    if request["do"] == "swell":
        kept = bytearray(os.urandom(1 << 20) * 200)
        time.sleep(600)
    return {"said": request["do"]}, b"body"
fork_for_each_socket(lambda: reply)
"""
"""Does what it is told, and needs no tables."""


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "COMMAND", (sys.executable, "-c", STAND_IN))


def asked(*requests: str) -> list[Any]:
    """What each said, one after another, or why not."""

    async def run() -> list[Any]:
        workers = Pool(1, Limits(seconds=60, memory_mb=50))
        await workers.open()
        try:
            return [await _reply(workers, {"do": request}) for request in requests]
        finally:
            await workers.close()

    return asyncio.run(run())


async def _reply(workers: Pool, request: Mapping[str, Any]) -> Any:
    try:
        head, body = await workers.ask(request)
        assert body == b"body"
        return head["said"]
    except Refusal as refusal:
        return refusal.kind


def test_a_worker_that_dies_is_named_and_the_next_one_answers() -> None:
    assert asked("one", "die", "two") == ["one", "broken", "two"]


def test_a_worker_that_takes_too_much_memory_is_ended() -> None:
    assert asked("swell", "one") == ["out_of_memory", "one"]


def test_who_finds_no_free_worker_is_told_that_others_are_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "WAIT_SECONDS", 0.01)

    async def run() -> Refusal:
        workers = Pool(1, Limits(seconds=60, memory_mb=5000))
        await workers.open()
        first = asyncio.create_task(workers.ask({"do": "swell"}))
        await asyncio.sleep(0)
        with pytest.raises(Refusal) as refused:
            await workers.ask({"do": "one"})
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await workers.close()
        return refused.value

    refused = asyncio.run(run())
    assert (refused.kind, refused.status) == ("busy", 503)
    assert "TIDEMARK_QUERY_STATEMENTS" in str(refused)
