"""Land one micro-batch in the master log, in one commit, with its control row.

files of a micro-batch + lsn -> master.log -> where the log ends
"""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.contracts import row_types, schema_history
from spark_jobs.contracts.schema_history import EVERY_SCHEMA, SchemaHistory
from spark_jobs.speed.continuity import EMPTY, LogEnd, Range
from spark_jobs.storage import data_files, ddl, duckdb_reader, log_reader, tables
from spark_jobs.storage.data_files import Bounds, Written
from spark_jobs.storage.fencing import Fence

BEFORE_ALL = 0
"""The lsn of the schemas that are in force when a log begins."""


def create(begins_with: SchemaHistory | None = None) -> SchemaHistory:
    """Create the master log, append only, so that nobody alters a row by accident. Returns its schema history.

    begins_with: the schemas of a new log; None: all. Raises ContractError if one in force has changed.
    """
    properties = {"delta.appendOnly": "true", **ddl.GROWS_FOR_EVER, **ddl.looked_up_by("lsn", "kind")}
    ddl.create(tables.MASTER_LOG, row_types.LOG, partition_by=["landed_on"], properties=properties)
    ddl.keep_properties(tables.MASTER_LOG, properties)
    if (history := log_reader.read_schema_history()) == EVERY_SCHEMA:
        history = begins_with or EVERY_SCHEMA.with_new(BEFORE_ALL)
        today = dt.datetime.now(dt.UTC).date()
        rows, root = schema_history.rows(history.entries, today), tables.path(tables.MASTER_LOG)
        data_files.commit_beside([], [rows], root, ("landed_on", today), partial(Fence(0).committing, lsn=BEFORE_ALL))
    return history


def commit(files: Sequence[Written], records: int, lsn: int, control: Mapping[str, object], fence: Fence) -> None:
    """Commit files, of so many records, at `lsn` with their `__batch__` row. `control`: fields of `row_types.BATCH`.

    All are in the partition of the day that `files` were made for.
    """
    row = batch_row(records, lsn, control)
    day = files[0].value if files else row["landed_on"][0].as_py()
    lands = partial(fence.committing, lsn=lsn)
    data_files.commit_beside(files, [row], tables.path(tables.MASTER_LOG), ("landed_on", day), lands)


def stamped(records: pa.Table, landed_on: dt.date) -> pa.Table:
    """Records as rows of the log."""
    dated = records.append_column("landed_on", pa.repeat(pa.scalar(landed_on, pa.date32()), records.num_rows))
    return dated.append_column("kind", pa.repeat(row_types.RECORD_ROW, records.num_rows))


def batch_row(records: int, lsn: int, control: Mapping[str, object]) -> pa.Table:
    """The control row of a micro-batch of so many records that lands now."""
    now = dt.datetime.now(dt.UTC)
    batch = {**control, "records": records, "landed_at": now}
    row = {"lsn": lsn, "landed_on": now.date(), "kind": row_types.BATCH_ROW, "batch": batch}
    return pa.Table.from_pylist([row], schema=row_types.LOG)


def log_end() -> LogEnd:
    """The end of the log as its last control row tells it; EMPTY where there is no log."""
    path = tables.path(tables.MASTER_LOG)
    if not DeltaTable.is_deltatable(path):
        return EMPTY
    log = DeltaTable(path)
    files = pa.table(log.get_add_actions(flatten=True))
    newest = pc.max(files["max.lsn"]).as_py() if files.num_rows else None
    if not newest:
        return EMPTY
    last = (pc.field("lsn") == newest) & (pc.field("kind") == row_types.BATCH_ROW)
    bounds: Bounds = {"lsn": [(newest, newest)], "kind": [(row_types.BATCH_ROW, row_types.BATCH_ROW)]}
    rows = duckdb_reader.within(tables.MASTER_LOG, bounds, log).to_table(["batch"], last)["batch"].to_pylist()
    if not rows:
        raise RuntimeError(f"master.log has records at lsn {newest} without a control row; it was written by others")
    [batch] = rows
    offsets = {(r["topic"], r["partition"]): r["until_offset"] for r in batch["ranges"]}
    return LogEnd(newest, batch["epoch"], offsets, dict(batch["topic_ids"]))


def control(
    epoch: int, ranges: list[Range], topic_ids: Mapping[str, str], started_at: dt.datetime
) -> dict[str, object]:
    """What is known of a `__batch__` row before it lands. Names every partition followed, also the idle ones."""
    return {
        "epoch": epoch,
        "ranges": [asdict(taken) for taken in ranges],
        "topic_ids": list(topic_ids.items()),
        "started_at": started_at,
    }
