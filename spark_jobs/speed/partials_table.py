"""speed.partials: its table, and what a start of the speed application reads from it. Nobody else writes it."""

import datetime as dt
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.id_window import IdWindow, counted
from spark_jobs.settings import settings
from spark_jobs.speed.pass_rows import partials_schema
from spark_jobs.storage import ddl, duckdb_reader, tables
from spark_jobs.storage.data_files import Bounds

SPAN = "span"
OPEN = 0
"""The span of rows as they were committed; `compaction` takes them to periods of the clock, as `tiers` says."""
LOOK_BACK = 500
"""Lsns that are looked at first; then twice as many each time."""


def create(views: Sequence[View]) -> None:
    """Create speed.partials, with a column per view."""
    properties = {**ddl.COMMITTED_OFTEN, **ddl.looked_up_by("view", "lsn")}
    schema = partials_schema(views).insert(2, pa.field(SPAN, pa.int64()))
    ddl.create(tables.SPEED_PARTIALS, schema, partition_by=[SPAN], properties=properties)
    ddl.keep_properties(tables.SPEED_PARTIALS, properties)


def restore_window(window: IdWindow, head: int) -> None:
    """Fill the window from the stored ids of the micro-batches up to lsn `head` that it would hold, in their order."""
    recent = dict(in_window(head))
    first = min(recent, default=head)
    ids = read(row_types.IDS_ROW, {"lsn": pc.field("lsn"), "ids": pc.field("control", "ids")}, first, head)
    stored = dict(zip(ids["lsn"].to_pylist(), ids["ids"].to_pylist(), strict=True))
    for lsn, at in recent.items():
        window.add(lsn, stored.get(lsn, b""), at)


def in_window(head: int) -> list[tuple[int, dt.datetime]]:
    """The lsns up to `head`, and when each was computed, whose ids a window holds after them; in the log's order.

    It looks back from head portion by portion, so that what came before costs no more than the window itself.
    """
    found: list[tuple[int, dt.datetime]] = []
    age, ids, below, many = dt.timedelta(0), 0, head + 1, LOOK_BACK
    keep, most = dt.timedelta(seconds=settings().id_window_seconds), settings().id_window_max_ids
    while below > 1:
        above = max(below - many, 1)
        columns = {"lsn": pc.field("lsn")} | {name: pc.field("control", name) for name in ("finished_at", "facts")}
        rows = read(row_types.BATCH_ROW, columns, above, below - 1)
        rows = rows.filter(pc.is_valid(rows["finished_at"]))
        for row in rows.sort_by([("lsn", "descending")]).to_pylist():
            age += counted(row["finished_at"], found[-1][1]) if found else dt.timedelta(0)
            if age > keep or ids >= most:
                return found[::-1]
            found.append((row["lsn"], row["finished_at"]))
            ids += row["facts"] or 0
        if found and not rows.num_rows:
            break  # what was before is trimmed
        below, many = above, 2 * many
    return found[::-1]


def duplicates(first_lsn: int, last_lsn: int) -> pa.Table:
    """The duplicates that a pass found in lsns first..last: lsn and coordinates."""
    columns = {name: pc.field("control", name) for name in ("topic", "partition", "offset")}
    return read(row_types.DUPLICATE_ROW, {"lsn": pc.field("lsn"), **columns}, first_lsn, last_lsn)


def read(kind: str, columns: Mapping[str, pc.Expression], first_lsn: int, last_lsn: int) -> pa.Table:
    """Columns of the rows of one kind with lsns first..last; only files that can hold such rows are opened."""
    lsn = pc.field("lsn")
    where = (pc.field("view") == kind) & (lsn >= first_lsn) & (lsn <= last_lsn)
    bounds: Bounds = {"view": [(kind, kind)], "lsn": [(first_lsn, last_lsn)]}
    return duckdb_reader.within(tables.SPEED_PARTIALS, bounds).to_table(dict(columns), where)
