"""speed.partials: its table, its commits, and what it covers.

files of a pass + control rows -> one commit. Only the speed application writes here.
"""

import datetime as dt
import time
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs import files, tables
from spark_jobs.files import FileWriter, Written
from spark_jobs.settings import settings
from spark_jobs.speed.compute import FIXED, partials_schema
from spark_jobs.view import View


def create(spark: SparkSession, views: Sequence[View]) -> None:
    """Create speed.partials where it does not exist, and add the columns of views that are new."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS speed")
    wanted = {f.name: f.dataType.simpleString() for f in from_arrow_schema(partials_schema(views)).fields}
    fixed = ", ".join(f"`{name}` {wanted[name]}" for name in FIXED.names)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {tables.SPEED_PARTIALS} ({fixed}) USING delta PARTITIONED BY (span) "
        "TBLPROPERTIES ('delta.checkpointInterval' = '100')"
    )
    existing = set(spark.table(tables.SPEED_PARTIALS).columns)
    added = ", ".join(f"`{name}` {kind}" for name, kind in wanted.items() if name not in existing)
    if added:
        spark.sql(f"ALTER TABLE {tables.SPEED_PARTIALS} ADD COLUMNS ({added})")


def current_span() -> int:
    """The span that a commit made now belongs to; a span lasts `span_seconds`."""
    return int(time.time()) // settings().span_seconds


def commit(written: Iterable[Written], span: int, controls: Sequence[tuple[int, Mapping[str, object]]]) -> None:
    """Files of a pass and one `__batch__` row per (lsn, control fields), in one commit."""
    root = tables.path(tables.SPEED_PARTIALS)
    with FileWriter(root, ("span", span)) as last:
        last.add(control_rows(span, controls))
        files.commit(root, [*written, *last.written()], {"lsn": str(controls[-1][0])})


def control_rows(span: int, controls: Iterable[tuple[int, Mapping[str, object]]]) -> pa.Table:
    """The `__batch__` rows: (lsn, fields of `tables.CONTROL`) each."""
    listed = [{"view": tables.BATCH_ROW, "lsn": lsn, "span": span, "control": fields} for lsn, fields in controls]
    return pa.Table.from_pylist(listed, schema=FIXED)


def coverage(spark: SparkSession, above: int) -> dict[int, frozenset[str]]:
    """Per lsn > `above` that has partials: the view columns that have been computed there."""
    found: dict[int, frozenset[str]] = {}
    rows = spark.sql(
        f"SELECT lsn, control.views FROM {tables.SPEED_PARTIALS} "
        f"WHERE view = '{tables.BATCH_ROW}' AND lsn > {int(above)}"
    )
    for lsn, views in rows.collect():
        found[lsn] = found.get(lsn, frozenset()) | frozenset(views)
    return found


def recent_ids(spark: SparkSession) -> pa.Table:
    """lsn, finished_at and ids of the micro-batches in the window of known ids, oldest first."""
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=settings().id_window_seconds)
    return spark.sql(
        f"SELECT i.lsn, b.at, i.control.ids FROM {tables.SPEED_PARTIALS} i "
        "JOIN (SELECT lsn, min(control.finished_at) AS at "
        f"FROM {tables.SPEED_PARTIALS} WHERE view = '{tables.BATCH_ROW}' GROUP BY lsn) b ON i.lsn = b.lsn "
        f"WHERE i.view = '{tables.IDS_ROW}' AND b.at >= TIMESTAMP '{since:%Y-%m-%d %H:%M:%S}' ORDER BY i.lsn"
    ).toArrow()


def duplicates(spark: SparkSession, first_lsn: int, last_lsn: int) -> pa.Table:
    """The verdicts on lsns first..last: lsn and coordinates of records found to be duplicates."""
    return spark.sql(
        "SELECT lsn, control.topic, control.partition, control.offset "
        f"FROM {tables.SPEED_PARTIALS} WHERE view = '{tables.DUPLICATE_ROW}' "
        f"AND lsn BETWEEN {int(first_lsn)} AND {int(last_lsn)}"
    ).toArrow()
