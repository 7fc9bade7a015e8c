"""Compact the hot tables, beside the micro-batches. The rows stay the same, and their order has no meaning.

speed.partials: the files that `tiers` puts together -> file by file -> one file per kind of row, with that kind's
columns alone, in the order of its key. master.log: see `log_compaction`. A step does a portion of bounded work and
memory, so that new micro-batches never wait long for theirs. A crash leaves files that no version names.
"""

import logging
import threading
import time
from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem

from spark_jobs.speed import log_compaction, tiers
from spark_jobs.speed.kind_files import KindFiles
from spark_jobs.speed.tiers import Join
from spark_jobs.storage import data_files, tables
from spark_jobs.storage.data_files import ROW_GROUP, Written
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.file_portions import in_portions

log = logging.getLogger("tidemark.speed.compaction")


def compact(turn: threading.Lock, fence: Fence, now: float | None = None) -> bool:
    """A portion of what is worth compacting; returns whether there was any. `turn` is held for the commits alone."""
    now = time.time() if now is None else now
    table = DeltaTable(tables.path(tables.SPEED_PARTIALS))
    joins = tiers.portion(pa.table(table.get_add_actions(flatten=True)), now)
    if joins:
        _join(table, joins, turn, fence)
    return log_compaction.compact(turn, fence, now) or bool(joins)


def _join(table: DeltaTable, joins: list[Join], turn: threading.Lock, fence: Fence) -> None:
    """Put the joined files in the place of those they were made from, in one version."""
    written: list[Written] = []
    for join in joins:
        files = KindFiles(tables.path(tables.SPEED_PARTIALS), join.into)
        for path in join.paths:
            for rows in _read(table, path):
                for kind in pc.unique(rows["view"]).to_pylist():
                    own = rows.select(["view", "lsn", kind if kind in rows.column_names else "control"])
                    files.add(kind, own.filter(pc.equal(own["view"], kind)))
        written += files.written()
    replaced = [path for join in joins for path in join.paths]
    with turn:  # between a micro-batch's look at the table and its commit, removed files would be a conflict
        table.update_incremental()
        data_files.swap(table, replaced, written, fence.committing, is_new=False)
    log.info("compacted %s: %d files to %d", tables.SPEED_PARTIALS, len(replaced), len(written))


def _read(table: DeltaTable, path: str) -> Iterator[pa.Table]:
    """The rows of a file, a row group at a time at most, with the columns that the file has."""
    fs, base = FileSystem.from_uri(tables.path(tables.SPEED_PARTIALS))
    file, schema = ds.dataset(f"{base}/{unquote(path)}", format="parquet", filesystem=fs), pa.schema(table.schema())
    columns = pa.schema([schema.field(name) for name in file.schema.names])
    for batch in in_portions(file.replace_schema(columns), ROW_GROUP):
        yield pa.Table.from_batches([batch])
