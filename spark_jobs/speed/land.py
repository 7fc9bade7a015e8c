"""Landing: one micro-batch into the master log, in one commit, with its control row.

files of a micro-batch + lsn -> master.log. And the other way: where does the log end?
"""

import datetime as dt
from collections.abc import Iterable, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs import files, tables
from spark_jobs.files import FileWriter, Written
from spark_jobs.speed.protocol import EMPTY, LogEnd, Range


def create(spark: SparkSession) -> None:
    """Create the master log where it does not exist; append only, so nobody may alter a row by accident."""
    columns = ", ".join(
        f"`{field.name}` {field.dataType.simpleString()}"
        for field in from_arrow_schema(tables.LOG, prefer_timestamp_ntz=False)
    )
    spark.sql("CREATE SCHEMA IF NOT EXISTS master")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {tables.MASTER_LOG} ({columns}) USING delta PARTITIONED BY (landed_on) "
        "TBLPROPERTIES ('delta.appendOnly' = 'true', 'delta.checkpointInterval' = '100')"
    )


def commit(written: Iterable[Written], lsn: int, control: Mapping[str, object]) -> None:
    """Files of records at `lsn` and their `__batch__` row, in one commit. `control`: the fields of `tables.BATCH`.

    All are in the partition of the day that `written` was made for.
    """
    row, files_of_records = batch_row(lsn, control), list(written)
    day = files_of_records[0].value if files_of_records else row["landed_on"][0].as_py()
    root = tables.path(tables.MASTER_LOG)
    with FileWriter(root, ("landed_on", day)) as last:
        last.add(row)
        files.commit(root, [*files_of_records, *last.written()], {"lsn": str(lsn)})


def stamped(records: pa.Table, landed_on: dt.date) -> pa.Table:
    """Records as rows of the log."""
    size = records.num_rows
    dated = records.append_column("landed_on", pa.array([landed_on] * size, pa.date32()))
    return dated.append_column("kind", pa.array([tables.RECORD_ROW] * size, pa.string()))


def batch_row(lsn: int, control: Mapping[str, object]) -> pa.Table:
    """The control row of a micro-batch that lands now."""
    now = dt.datetime.now(dt.UTC)
    batch = {**control, "landed_at": now}
    row = {"lsn": lsn, "landed_on": now.date(), "kind": tables.BATCH_ROW, "batch": batch}
    return pa.Table.from_pylist([row], schema=tables.LOG)


def log_end(spark: SparkSession) -> LogEnd:
    """The end of the log as its last control row tells it."""
    last = spark.table(tables.MASTER_LOG).agg(F.max("lsn")).first()
    if last is None or last[0] is None:
        return EMPTY
    row = (
        spark.table(tables.MASTER_LOG)
        .where((F.col("lsn") == last[0]) & (F.col("kind") == tables.BATCH_ROW))
        .select("batch.*")
        .first()
    )
    if row is None:
        raise RuntimeError(f"master.log has records at lsn {last[0]} without a control row; it was written by others")
    offsets = {(r["topic"], r["partition"]): r["until_offset"] for r in row["ranges"]}
    return LogEnd(last[0], row["epoch"], offsets, row["topic_ids"])


def control(
    epoch: int, ranges: list[Range], topic_ids: Mapping[str, str], started_at: dt.datetime, records: int
) -> dict[str, object]:
    """The fields of a `__batch__` row, but for the landing time. Names every partition followed, also the idle ones."""
    return {
        "epoch": epoch,
        "ranges": [
            {"topic": r.topic, "partition": r.partition, "from_offset": r.start, "until_offset": r.until}
            for r in ranges
        ],
        "topic_ids": list(topic_ids.items()),
        "records": records,
        "started_at": started_at,
    }
