"""Where the master log ends, read without a JVM (delta-rs): for commands that must answer at once."""

import deltalake
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs import tables
from spark_jobs.speed.protocol import EMPTY, LogEnd


def log_end() -> LogEnd:
    """As `land.log_end`, from outside the speed application."""
    path = tables.path(tables.MASTER_LOG)
    if not deltalake.DeltaTable.is_deltatable(path):
        return EMPTY
    log = deltalake.DeltaTable(path)
    newest = pc.max(pa.table(log.get_add_actions(flatten=True))["max.lsn"]).as_py()
    if newest is None:
        return EMPTY
    last = (pc.field("lsn") == newest) & (pc.field("kind") == tables.BATCH_ROW)
    [row] = log.to_pyarrow_dataset().to_table(columns=["batch"], filter=last).to_pylist()
    batch = row["batch"]
    offsets = {(r["topic"], r["partition"]): r["until_offset"] for r in batch["ranges"]}
    return LogEnd(newest, batch["epoch"], offsets, dict(batch["topic_ids"]))
