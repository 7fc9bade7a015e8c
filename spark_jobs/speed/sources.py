"""How the records of a micro-batch come out of Kafka.

offsets -> stream, which says what a micro-batch takes; its ranges -> few -> an Arrow table, where they are small
enough; else ByClient -> `distributed.take`: the workers read them. Spark's source reads what only Java can: `stamped`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.contracts import row_types
from spark_jobs.contracts.row_types import Partition
from spark_jobs.messaging import security
from spark_jobs.messaging.consumer import Client, Stretch
from spark_jobs.settings import settings
from spark_jobs.speed.checkpoint import Offsets
from spark_jobs.speed.continuity import Range
from spark_jobs.storage.log_reader import Reader
from spark_jobs.storage.task_files import Batches, numbers, shares

MEGABYTE = 1024 * 1024
LONG = 10_000
"""Offsets of a partition above which its stretch is cut."""
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


def few(client: Client, ranges: Sequence[Range], lsn: int) -> pa.Table | None:
    """The records of the ranges; None where they are too many, or too large together, for this process."""
    if sum(one.until_offset - one.from_offset for one in ranges) > settings().in_process_records:
        return None
    batches, free = list[pa.RecordBatch](), settings().in_process_mb * MEGABYTE
    for batch in client.records({(one.topic, one.partition): _stretch(one) for one in ranges}, lsn):
        free -= batch.nbytes
        if free < 0:
            return None
        batches.append(batch)
    return pa.Table.from_batches(batches, pa.schema(row_types.RECORD))


@dataclass(frozen=True)
class ByClient:
    """The records of a micro-batch's ranges, as `log_reader.Divided`: the workers ask Kafka themselves."""

    spark: SparkSession
    ranges: Sequence[Range]
    lsn: int

    def tasks(self) -> tuple[DataFrame, Reader]:
        parts, options, lsn = divided(self.ranges, settings().cores), security.native(), self.lsn

        def read(batches: Batches) -> Iterator[pa.RecordBatch]:
            with Client(options) as client:
                for number in numbers(batches):
                    yield from client.records(parts[number], lsn)

        return shares(self.spark, len(parts)), read


def divided(ranges: Sequence[Range], into: int) -> Sequence[Mapping[Partition, Stretch]]:
    """The ranges in so many parts of about one size. Long ones are cut: any offset is as good an end as another."""
    parts, sizes = [dict[Partition, Stretch]() for _ in range(into)], [0] * into
    for one in sorted(ranges, key=lambda one: one.from_offset - one.until_offset):
        first, until = _stretch(one)
        pieces = into if until - first > LONG else 1
        cuts = [first + (until - first) * cut // pieces for cut in range(pieces + 1)]
        smallest = sorted(range(into), key=sizes.__getitem__)
        for part, start, end in zip(smallest, cuts, cuts[1:], strict=False):
            parts[part][one.topic, one.partition] = (start, end)
            sizes[part] += end - start
    return parts


def _stretch(one: Range) -> Stretch:
    return one.from_offset, one.until_offset
