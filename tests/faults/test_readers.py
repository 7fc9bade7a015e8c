"""I5: readers over Thrift, while what they read is changed: each answer is the old one or the new one, whole."""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.orchestration.interface import BATCH_STEPS
from spark_jobs.settings import ROOT
from tests.platform import Platform, await_true, running
from tests.spark.lake import event

pytestmark = [pytest.mark.fault, pytest.mark.platform]

VIEW = "orders_by_colour"
QUESTION = f"SELECT colour, orders, large_orders, mean_unit_price_cents FROM serving.{VIEW} ORDER BY colour"
Answer = list[tuple[Any, ...]]


class Reader:
    """Asks again and again; every answer that it got, and every error."""

    def __init__(self, platform: Platform) -> None:
        self.answers, self.errors = list[Answer](), list[Exception]()
        self._platform, self._ended = platform, threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "Reader":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.is_set():
            try:
                self.answers.append(self._platform.sql(QUESTION))
            except Exception as error:
                self.errors.append(error)

    def sees(self, answer: Answer) -> None:
        """Wait until the newest answer is this one."""
        await_true(lambda: self.answers[-1:] == [answer], 90, f"{answer} is not served, but {self.answers[-1:]}")


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform with two views, and a second version of one that counts otherwise, with orders in it."""
    folder = tmp_path_factory.mktemp("views")
    for name in (VIEW, "word_count"):
        shutil.copy(ROOT / f"spark_jobs/views/{name}.py", folder)
    with running(ROOT, "thrift", "speed", views_folder=folder) as started:
        started.tidemark("generate", "--events", "3000", "--seed", "5")
        await_true(lambda: started.heartbeat().get("lag") == 0, 180, "the speed layer does not catch up")
        await_true(lambda: bool(started.sql(QUESTION)), 60, "nothing is served")
        second_version(folder)
        started.tidemark("restart", "speed")
        await_true(lambda: started.heartbeat().get("state") == "running", 120, "it does not start again")
        yield started


def second_version(folder: Path) -> None:
    text = (folder / f"{VIEW}.py").read_text().replace('"orders": Count()', '"orders": Count(where="quantity >= 2")')
    (folder / f"{VIEW}_v2.py").write_text(text.replace("owner=", "version=2,\n    owner="))


def build(platform: Platform, run_id: str) -> None:
    for step in BATCH_STEPS:
        platform.tidemark("batch", step, "--run-id", run_id)


def say_something(platform: Platform, file: Path) -> None:
    """A sentence lands: the next run has something to build, and the view that is read has not."""
    before = platform.heartbeat()["lsn"]
    file.write_text(json.dumps(event("sentence_posted", 1, text="a word")) + "\n")
    platform.tidemark("send", "sentence_posted", "--file", str(file))
    await_true(lambda: platform.heartbeat()["lsn"] > before, 60, "the sentence does not land")


def test_i5_readers_see_one_version_or_the_other_and_never_a_mixture(platform: Platform, tmp_path: Path) -> None:
    def build_more(of: Platform) -> None:
        """Without news there would be no publication, and the rollback would go to the one before the promotion."""
        say_something(of, tmp_path / "sentence")
        build(of, "r2")

    first = platform.sql(QUESTION)
    steps: list[tuple[Callable[[Platform], Any], bool]] = [
        (lambda of: of.tidemark("view", "promote", VIEW), True),
        (lambda of: build(of, "r1"), True),
        (lambda of: of.tidemark("view", "rollback", VIEW), False),
        (build_more, False),
        (lambda of: of.tidemark("batch", "rollback"), False),
        (lambda of: of.tidemark("view", "promote", VIEW), True),
    ]
    second: Answer = []
    with Reader(platform) as reader:
        reader.sees(first)
        for act, is_second in steps:
            act(platform)
            if is_second and not second:
                second = platform.sql(QUESTION)
                assert second != first, "the answers differ, so that a mixture would be seen"
            reader.sees(second if is_second else first)
    assert reader.errors == []
    assert {repr(answer) for answer in reader.answers} == {repr(first), repr(second)}


def test_i5_a_view_that_somebody_dropped_comes_back_whole(platform: Platform) -> None:
    right = platform.sql(QUESTION)
    with Reader(platform) as reader:
        reader.sees(right)
        platform.sql(f"DROP VIEW serving.{VIEW}")
        await_true(lambda: bool(reader.errors), 30, "it was not dropped")
        seen = len(reader.answers)
        await_true(lambda: len(reader.answers) > seen, 120, "it does not come back")
    assert all("TABLE_OR_VIEW_NOT_FOUND" in str(error) for error in reader.errors)
    assert {repr(answer) for answer in reader.answers} == {repr(right)}
