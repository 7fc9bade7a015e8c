"""speed.partials: its table, and what a start of the speed application reads from it. Nobody else writes it."""

import datetime as dt
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.settings import settings
from spark_jobs.speed.pass_rows import partials_schema
from spark_jobs.storage import ddl, duckdb_reader, tables
from spark_jobs.storage.coverage import covered

SPAN = "span"
OPEN = 0
"""The span of rows as they were committed; `compaction` takes them to the span of the time it runs."""


def create(views: Sequence[View]) -> None:
    """Create speed.partials, with a column per view."""
    properties = {**ddl.COMMITTED_OFTEN, **ddl.looked_up_by("view", "lsn")}
    schema = partials_schema(views).insert(2, pa.field(SPAN, pa.int64()))
    ddl.create(tables.SPEED_PARTIALS, schema, partition_by=[SPAN], properties=properties)


def restore_window(window: IdWindow) -> None:
    """Fill the window from the stored ids of recent micro-batches, in the order of their lsns."""
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=settings().id_window_seconds)
    finished = {lsn: done.at for lsn, done in covered(0).items() if done.at is not None and done.at >= since}
    wanted = pc.field("lsn").isin(pa.array(finished, pa.int64())) & (pc.field("view") == row_types.IDS_ROW)
    ids = read({"lsn": pc.field("lsn"), "ids": pc.field("control", "ids")}, wanted).sort_by("lsn")
    for row in ids.to_pylist():
        window.add(row["lsn"], row["ids"], finished[row["lsn"]])


def duplicates(first_lsn: int, last_lsn: int) -> pa.Table:
    """The duplicates that a pass found in lsns first..last: lsn and coordinates."""
    lsn = pc.field("lsn")
    wanted = (lsn >= first_lsn) & (lsn <= last_lsn) & (pc.field("view") == row_types.DUPLICATE_ROW)
    return read({"lsn": lsn, **{name: pc.field("control", name) for name in ("topic", "partition", "offset")}}, wanted)


def read(columns: Mapping[str, pc.Expression], where: pc.Expression) -> pa.Table:
    """Columns of the rows that match; only files that can hold such rows are read."""
    return duckdb_reader.dataset(tables.SPEED_PARTIALS).to_table(columns=dict(columns), filter=where)
