"""What a Spark worker does between the tasks of a job, which is nothing that grows with the modules it has loaded."""

import gc
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.storage import task_files

pytestmark = pytest.mark.spark
MANY = 10_000


def test_what_a_workers_first_task_has_loaded_is_not_searched_for_garbage_after_each(spark: SparkSession) -> None:
    def task(batches: task_files.Batches) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        row = {"name": "kept", "rows": gc.get_freeze_count(), "file": None}
        yield pa.RecordBatch.from_pylist([row], task_files.REPORT)

    one_worker = spark.range(1, numPartitions=1)
    kept = [task_files.run(one_worker, task)["rows"][0].as_py() for _ in range(3)]
    assert kept[-1] > MANY
