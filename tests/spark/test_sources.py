"""How the records of a micro-batch come out of Spark's source: into this process where they are small together."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs.contracts import row_types
from spark_jobs.settings import settings
from spark_jobs.speed import sources

pytestmark = pytest.mark.spark
KILOBYTES_100 = b"a" * 100_000


@pytest.fixture(autouse=True)
def one_megabyte(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What this process may take of a micro-batch."""
    monkeypatch.setenv("TIDEMARK_IN_PROCESS_MB", "1")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


def few(spark: SparkSession, *records: dict[str, Any]) -> pa.Table | None:
    place = {"lsn": 1, "topic": "t", "partition": 0, "timestamp": None, "key": None, "value": None, "headers": None}
    rows = [{**place, "offset": offset, **record} for offset, record in enumerate(records)]
    schema = from_arrow_schema(row_types.RECORD, prefer_timestamp_ntz=False)
    return sources.few(spark.createDataFrame(rows, schema), len(rows))


@pytest.mark.parametrize(
    "large",
    [{"value": KILOBYTES_100}, {"key": KILOBYTES_100}, {"headers": [{"key": "h", "value": KILOBYTES_100}]}],
    ids=lambda record: next(iter(record)),
)
def test_b4_records_that_may_be_too_large_together_are_left_to_the_workers(
    spark: SparkSession, large: dict[str, Any]
) -> None:
    assert few(spark, *[large] * 11) is None
    taken = few(spark, *[large] * 10)
    assert taken is not None and taken.num_rows == 10
    assert {name: taken[name][0].as_py() for name in large} == large
    assert taken.schema == row_types.RECORD


def test_b4_an_empty_micro_batch_stays_in_this_process(spark: SparkSession) -> None:
    taken = few(spark)
    assert taken is not None and not taken.num_rows
