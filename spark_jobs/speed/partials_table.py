"""speed.partials: its table, its commits, and what it covers.

files of a pass + control rows -> one commit. Only the speed application writes here.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import View
from spark_jobs.settings import settings
from spark_jobs.speed.pass_rows import FIXED, partials_schema
from spark_jobs.storage import data_files, ddl, duckdb_reader, tables
from spark_jobs.storage.coverage import covered
from spark_jobs.storage.data_files import FileWriter, Written

SPAN = "span"
OPEN = 0
"""The span of rows as they were committed; `compaction` takes them to the span of the time it runs."""


def create(views: Sequence[View]) -> None:
    """Create speed.partials, with a column per view."""
    properties = {**ddl.COMMITTED_OFTEN, **ddl.looked_up_by("view", "lsn")}
    schema = partials_schema(views).insert(2, pa.field(SPAN, pa.int64()))
    ddl.create(tables.SPEED_PARTIALS, schema, partition_by=[SPAN], properties=properties)


def commit(
    written: Iterable[Written],
    controls: Sequence[tuple[int, Mapping[str, object]]],
    found: Iterable[pa.Table] = (),
) -> None:
    """Commit a pass at once: its files, what it `found` (control rows), a `__batch__` row per (lsn, fields)."""
    root = tables.path(tables.SPEED_PARTIALS)
    with FileWriter(root, (SPAN, OPEN)) as last:
        for rows in (*found, control_rows(controls)):
            last.add(rows)
        data_files.commit(root, [*written, *last.written()], {"lsn": str(controls[-1][0])})


def control_rows(controls: Iterable[tuple[int, Mapping[str, object]]]) -> pa.Table:
    """The `__batch__` rows, each of (lsn, fields of `row_types.CONTROL`)."""
    listed = [{"view": row_types.BATCH_ROW, "lsn": lsn, "control": fields} for lsn, fields in controls]
    return pa.Table.from_pylist(listed, schema=FIXED)


def placed(rows: pa.Table) -> pa.Table:
    """Rows with the column of their partition, OPEN."""
    return rows.append_column(SPAN, pa.array([OPEN] * rows.num_rows, pa.int64()))


def recent_ids() -> pa.Table:
    """lsn, finished_at and ids of the micro-batches in the window of known ids, in the order of their lsns."""
    since = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=settings().id_window_seconds)
    finished = {lsn: done.at for lsn, done in covered(0).items() if done.at is not None and done.at >= since}
    wanted = pc.field("lsn").isin(pa.array(finished, pa.int64())) & (pc.field("view") == row_types.IDS_ROW)
    ids = _read({"lsn": pc.field("lsn"), "ids": pc.field("control", "ids")}, wanted).sort_by("lsn")
    at = pa.array([finished[lsn] for lsn in ids["lsn"].to_pylist()], row_types.INSTANT)
    return ids.append_column("at", at)


def duplicates(first_lsn: int, last_lsn: int) -> pa.Table:
    """The duplicates that a pass found in lsns first..last: lsn and coordinates."""
    lsn = pc.field("lsn")
    wanted = (lsn >= first_lsn) & (lsn <= last_lsn) & (pc.field("view") == row_types.DUPLICATE_ROW)
    return _read({"lsn": lsn, **{name: pc.field("control", name) for name in ("topic", "partition", "offset")}}, wanted)


def _read(columns: Mapping[str, pc.Expression], where: pc.Expression) -> pa.Table:
    return duckdb_reader.dataset(tables.SPEED_PARTIALS).to_table(columns=dict(columns), filter=where)
