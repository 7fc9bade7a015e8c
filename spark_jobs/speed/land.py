"""Landing: one micro-batch into the master log, in one commit, with its control row.

files of a micro-batch + lsn -> master.log. And the other way: where does the log end?
"""

import datetime as dt
from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs import creation, files, tables
from spark_jobs.files import FileWriter, Written
from spark_jobs.speed.protocol import EMPTY, LogEnd, Range


def create() -> None:
    """The master log exists; append only, so nobody may alter a row by accident."""
    properties = {"delta.appendOnly": "true", **creation.COMMITTED_OFTEN, **creation.looked_up_by("lsn", "kind")}
    creation.create(tables.MASTER_LOG, tables.LOG, partition_by=["landed_on"], properties=properties)


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


def log_end() -> LogEnd:
    """The end of the log as its last control row tells it; EMPTY where there is no log."""
    path = tables.path(tables.MASTER_LOG)
    if not DeltaTable.is_deltatable(path):
        return EMPTY
    log = DeltaTable(path)
    files = pa.table(log.get_add_actions(flatten=True))
    newest = pc.max(files["max.lsn"]).as_py() if files.num_rows else None
    if newest is None:
        return EMPTY
    last = (pc.field("lsn") == newest) & (pc.field("kind") == tables.BATCH_ROW)
    rows = log.to_pyarrow_dataset().to_table(columns=["batch"], filter=last)["batch"].to_pylist()
    if not rows:
        raise RuntimeError(f"master.log has records at lsn {newest} without a control row; it was written by others")
    [batch] = rows
    offsets = {(r["topic"], r["partition"]): r["until_offset"] for r in batch["ranges"]}
    return LogEnd(newest, batch["epoch"], offsets, dict(batch["topic_ids"]))


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
