"""The peers of DRAIN, each a process of its own: `python -m tests.bench.peers limit|naive FILE`.

Kafka backlog -> Spark Structured Streaming (availableNow) -> when the query began and ended, as JSON in the file.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StreamingQuery

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.settings import settings
from spark_jobs.speed.sources import FETCH_WAIT_MS
from spark_jobs.storage.session import spark_session

JSON_TYPES = {"string": T.StringType(), "integer": T.LongType(), "number": T.DoubleType()}


def source(spark: SparkSession, topics: list[str]) -> DataFrame:
    """The topics from their first records; no read waits at the end of a partition, as none of ours does."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", settings().kafka)
        .option("kafka.fetch.max.wait.ms", str(FETCH_WAIT_MS))
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", str(settings().max_records_per_batch))
        .load()
    )


def start(stream: Any, folder: str) -> StreamingQuery:
    query: StreamingQuery = stream.option("checkpointLocation", folder).trigger(availableNow=True).start()
    return query


def limit(spark: SparkSession, folder: str) -> list[StreamingQuery]:
    """Kafka -> nothing: what no consumer of Spark's can pass."""
    backlog = source(spark, list(project_contracts().topics))
    return [start(backlog.writeStream.format("noop"), folder)]


def parsed(spark: SparkSession, event_type: str) -> DataFrame:
    fields = [T.StructField("event_id", T.StringType()), T.StructField("occurred_at", T.TimestampType())]
    for field in project_contracts().of(event_type).fields:
        kind = field.schema["type"]
        fields.append(T.StructField(field.name, JSON_TYPES[kind[0] if isinstance(kind, list) else kind]))
    rows = source(spark, [event_type])
    return rows.select(F.from_json(F.col("value").cast("string"), T.StructType(fields)).alias("e")).select("e.*")


def hour() -> Column:
    return F.date_trunc("HOUR", "occurred_at").alias("hour")


def day() -> Column:
    return F.to_date("occurred_at").alias("day")


def naive_views(spark: SparkSession) -> dict[str, DataFrame]:
    """The town's aggregate views as somebody writes them who knows Structured Streaming: one query each."""
    orders, pages = parsed(spark, "order_placed"), parsed(spark, "page_viewed")
    revenue = F.sum(F.col("quantity") * F.col("unit_price_cents")).alias("revenue_cents")
    words = F.explode(F.split(F.lower("text"), "[^a-z0-9]+")).alias("word")
    latest = F.max_by(F.struct("line", "lat", "lon"), "occurred_at").alias("position")
    return {
        "orders_by_day": orders.groupBy(day(), "store_id").agg(F.count("*").alias("orders"), revenue),
        "orders_by_hour": orders.groupBy(hour(), "store_id").agg(
            F.count("*").alias("orders"), revenue, F.approx_count_distinct("user_id").alias("buyers")
        ),
        "orders_by_colour": orders.groupBy("colour").agg(
            F.count("*").alias("orders"), F.avg("unit_price_cents").alias("mean_price")
        ),
        "page_views_per_user_hour": pages.groupBy("user_id", hour()).agg(F.count("*").alias("page_views")),
        "word_count": parsed(spark, "sentence_posted").select(words).groupBy("word").agg(F.count("*").alias("n")),
        "bus_latest": parsed(spark, "bus_position_reported").groupBy("bus_id").agg(latest),
    }


def naive(spark: SparkSession, folder: str) -> list[StreamingQuery]:
    """One query per view, Delta's defaults; neither sequence views nor de-duplication, which would cost it more."""
    return [
        start(
            view.writeStream.format("delta").outputMode("complete").option("path", f"{folder}/table/{name}"),
            f"{folder}/checkpoint/{name}",
        )
        for name, view in naive_views(spark).items()
    ]


def main(peer: str, answer: str) -> None:
    memory = f"{settings().speed_memory_mb}m"
    spark = spark_session(
        f"tidemark-bench-{peer}", **{"spark.driver.memory": memory, "spark.sql.catalogImplementation": "in-memory"}
    )
    with tempfile.TemporaryDirectory(dir=settings().tmp_dir) as folder:
        began_at = time.time()
        queries = {"limit": limit, "naive": naive}[peer](spark, folder)
        for query in queries:
            query.awaitTermination()
        Path(answer).write_text(json.dumps({"began_at": began_at, "ended_at": time.time()}))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
