"""How the records of a micro-batch come out of Kafka: into this process, to the workers, or by a client of their own.

offsets -> stream; a micro-batch of it -> few -> an Arrow table, where it is small enough; else `distributed.take` of
the frame.
What Spark's source cannot read, a timestamp beyond its range, the workers read themselves: ByClient.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts import row_types
from spark_jobs.messaging import consumer, security
from spark_jobs.settings import settings
from spark_jobs.speed.checkpoint import Offsets
from spark_jobs.speed.continuity import Range
from spark_jobs.storage.log_reader import Reader
from spark_jobs.storage.task_files import Batches, numbers, shares

MEGABYTE = 1024 * 1024
OVERFLOW = "java.lang.ArithmeticException: long overflow"
"""How Spark's source ends at a timestamp of which it cannot count the microseconds."""


FETCH_WAIT_MS = 10
"""A task reads its Kafka partitions one after the other, and a fetch left over from the last micro-batch makes each of
them wait this long: with Kafka's default of 500, twelve partitions took 2.6 s, with 10 they take 0.2 s."""
POLLED = 100
"""Records that a task has of each partition at once, unpacked: of a megabyte each, Kafka's default of 500 would fill
the heap."""


def stream(spark: SparkSession, start: Offsets) -> DataFrame:
    """The records of all topics from those offsets on, as a stream. What is lost before it is read ends it."""
    return (
        spark.readStream.format("kafka")
        .options(**security.spark_options())
        .option("subscribe", ",".join(sorted(start)))
        .option("startingOffsets", json.dumps(start))
        .option("failOnDataLoss", "true")
        .option("kafka.isolation.level", "read_committed")
        .option("includeHeaders", "true")
        .option("kafka.fetch.max.wait.ms", str(FETCH_WAIT_MS))
        .option("kafka.max.poll.records", str(POLLED))
        .option("maxOffsetsPerTrigger", str(settings().max_records_per_batch))
        .load()
    )


def stamped(batch: DataFrame, lsn: int) -> DataFrame:
    """The columns of row_types.RECORD, in few partitions: one task per core, not one per Kafka partition."""
    names = [field.name for field in row_types.RECORD]
    return batch.withColumn("lsn", F.lit(lsn).cast("bigint")).select(names).coalesce(settings().cores)


def few(records: DataFrame, most: int) -> pa.Table | None:
    """The records, of which there are at most so many; None where they are too many, or may be too large together.

    No record is larger than its share of what this process may take, or it comes without its bytes: a thousand records
    of a megabyte would exceed the driver's heap, at every start.
    """
    if most > settings().in_process_records:
        return None
    fits = _bytes() <= settings().in_process_mb * MEGABYTE // max(most, 1)
    whole = {name: F.when(fits, F.col(name)) for name in ("key", "value", "headers")}
    taken = records.withColumns({"fits": fits, **whole}).toArrow()
    if not pc.all(taken["fits"], min_count=0).as_py():
        return None
    return taken.drop_columns("fits").cast(row_types.RECORD)


def _bytes() -> Column:
    """The size of a record."""
    headers = F.aggregate("headers", F.lit(0), lambda sum_, h: sum_ + F.length(h["key"]) + _length(h["value"]))
    return _length("key") + _length("value") + F.coalesce(headers, F.lit(0))


def _length(column: str | Column) -> Column:
    return F.coalesce(F.length(column), F.lit(0))


def is_unreadable(error: Exception) -> bool:
    """Whether Spark's source failed for a timestamp."""
    return OVERFLOW in str(error)


@dataclass(frozen=True)
class ByClient:
    """The records of a micro-batch's ranges, as `log_reader.Divided`: read past Spark's source."""

    spark: SparkSession
    ranges: Sequence[Range]
    lsn: int

    def tasks(self) -> tuple[DataFrame, Reader]:
        taken = [one for one in self.ranges if one.from_offset < one.until_offset]
        groups, lsn = [taken[core :: settings().cores] for core in range(settings().cores)], self.lsn

        def read(batches: Batches) -> Iterator[pa.RecordBatch]:
            for number in numbers(batches):
                for one in groups[number]:
                    place = (one.topic, one.partition)
                    yield from consumer.records(place, one.from_offset, one.until_offset, lsn)

        return shares(self.spark, len(groups)), read
