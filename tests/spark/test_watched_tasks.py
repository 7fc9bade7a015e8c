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


def slow(folder: Path) -> Task:
    """A task takes a second, and leaves a file."""

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for number in task_files.numbers(batches):
            time.sleep(1)
            (folder / str(number)).touch()
            yield from pa.Table.from_pylist([{"name": str(number)}], schema=task_files.REPORT).to_batches()

    return run


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_files, "TELL_SECONDS", 0.1)


def test_it_is_told_how_many_tasks_are_done(spark: SparkSession, tmp_path: Path) -> None:
    told = list[tuple[int, int]]()
    with task_files.watched(spark, lambda done, of: told.append((done, of))):
        assert task_files.run(task_files.shares(spark, TASKS), slow(tmp_path)).num_rows == TASKS
    assert told == sorted(told) and {of for _, of in told} <= {0, TASKS}
    assert any(0 < done < TASKS for done, _ in told), told


def test_what_is_raised_when_told_ends_the_tasks(spark: SparkSession, tmp_path: Path) -> None:
    def refuse(done: int, of: int) -> None:
        if done:
            raise RuntimeError("superseded")

    with pytest.raises(RuntimeError, match="superseded"), task_files.watched(spark, refuse):
        task_files.run(task_files.shares(spark, 10 * TASKS), slow(tmp_path))
    assert len(list(tmp_path.iterdir())) < 10 * TASKS, "the tasks went on"
