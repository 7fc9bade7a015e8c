"""A worker that dies, or takes too much memory, is named and followed by another; the reply of the next is its own."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from spark_jobs.query_server import nursery, pool
from spark_jobs.query_server.pool import Limits, Pool
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.settings import settings

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


@pytest.mark.parametrize("cause", [psutil.NoSuchProcess(1), OSError(24, "Too many open files")])
def test_a_place_whose_worker_cannot_start_is_filled_when_the_cause_is_gone(
    cause: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that has ended before it is looked at; no more files for one."""
    left = [cause, cause]

    def failing(number: int) -> psutil.Process:
        if left:
            raise left.pop()
        return psutil.Process(number)

    async def run() -> Any:
        workers = Pool(2, Limits(seconds=60, memory_mb=5000))
        monkeypatch.setattr(pool, "psutil", SimpleNamespace(**{**vars(psutil), "Process": failing}))
        await workers.open()
        first = asyncio.create_task(workers.ask({"do": "swell"}))
        await asyncio.sleep(0)
        said = await _reply(workers, {"do": "one"})
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await workers.close()
        return said

    assert asyncio.run(run()) == "one"


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


def test_workers_follow_the_files_of_views_and_a_file_that_cannot_be_loaded_changes_nothing(
    platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process takes what it loads from the file, and fails where it says so."""
    file, tried = tmp_path / "views/one.py", tmp_path / "tried"
    file.parent.mkdir()
    file.write_text("first")
    monkeypatch.setenv("TIDEMARK_VIEWS_FOLDER", str(file.parent))
    settings.cache_clear()
    loads = f"loaded = open({str(file)!r}).read()\nopen({str(tried)!r}, 'a').write(loaded)\nassert loaded != 'broken'\n"
    says = STAND_IN.replace('{"said": request["do"]}', '{"said": loaded}')
    monkeypatch.setattr(nursery, "COMMAND", (sys.executable, "-c", loads + says))
    monkeypatch.setattr(pool, "FOLLOW_SECONDS", 0.01)
    monkeypatch.setattr(pool, "RETRY_SECONDS", 0.01)

    async def run() -> list[Any]:
        workers, said = Pool(2, Limits(seconds=60, memory_mb=50)), []
        await workers.open()
        try:
            file.write_text("broken")
            while "broken" not in tried.read_text():
                said.append(await _reply(workers, {"do": "one"}))
            said += [await _reply(workers, {"do": "one"}) for _ in range(4)]
            file.write_text("second")
            while (answer := await _reply(workers, {"do": "one"})) != "second":
                said.append(answer)
            return [set(said), {await _reply(workers, {"do": "one"}) for _ in range(4)}]
        finally:
            await workers.close()

    assert asyncio.run(run()) == [{"first"}, {"second"}]
