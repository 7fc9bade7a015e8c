"""While tasks are at work, somebody is told how far they are, and may end them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.storage import task_files
from spark_jobs.storage.task_files import Batches, Task

pytestmark = pytest.mark.spark
TASKS = 4
"""More than there are cores."""


def waiting(seen: Path) -> Task:
    """The first share is done at once, the others when somebody has seen it: then the file is there."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number in task_files.numbers(batches):
            while number and not seen.exists():
                time.sleep(0.1)
            yield from pa.Table.from_pylist([{"name": str(number)}], schema=task_files.REPORT).to_batches()

    return run


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_files, "TELL_SECONDS", 0.1)


def test_it_is_told_how_many_tasks_are_done(spark: SparkSession, tmp_path: Path) -> None:
    seen, told = tmp_path / "seen", list[tuple[int, int]]()

    def tell(done: int, of: int) -> None:
        told.append((done, of))
        if done:
            seen.touch()

    with task_files.watched(spark, tell):
        assert task_files.run(task_files.shares(spark, TASKS), waiting(seen)).num_rows == TASKS
    assert told == sorted(told) and {of for _, of in told} <= {0, TASKS}
    assert (1, TASKS) in told, told


def test_what_is_raised_when_told_ends_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(done: int, of: int) -> None:
        if done:
            raise RuntimeError("superseded")

    with pytest.raises(RuntimeError, match="superseded"), task_files.watched(spark, refuse):
        task_files.run(task_files.shares(spark, TASKS), waiting(tmp_path / "never"))
    after = task_files.run(task_files.shares(spark, 1), waiting(tmp_path / "never"))
    assert after.num_rows == 1, "no task holds a core any more"
