"""Compact master.log: the small files of a day, as micro-batches land them, to files of LOG_FILE and more.

add actions -> files of about one size -> batch by batch -> a file of records, and one of control rows, so that whoever
asks for control rows reads no record. The log only grows (I12): the rows stay, in the order of their lsns.
"""

import logging
import math
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem

from spark_jobs.contracts import row_types
from spark_jobs.storage import data_files, tables
from spark_jobs.storage.data_files import FileWriter, Written
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.file_portions import in_portions

log = logging.getLogger("tidemark.speed.compaction")

LOG_FILE = 256 * 2**20
"""Bytes; a file of the log that is as large is not written again."""
MANY_LOG_FILES = 32
"""So many files of about one size wait: a row of the log is written again three times at most."""
TIMES = 16
"""Files are of about one size where the largest has at most so many times the bytes of the smallest."""
ROW_GROUP_BYTES = 32 * 2**20
"""Bytes of rows in memory, and in a row group."""
DAY = "partition.landed_on"
BATCH = 1_000
"""Rows read at a time; a record may be of a megabyte."""


@dataclass(frozen=True)
class Join:
    """Files (paths of add actions) of one day that become larger ones."""

    paths: tuple[str, ...]
    day: date


def compact(turn: threading.Lock, fence: Fence, now: float) -> bool:
    """Join some files of one day; returns whether there were any worth it. `turn` is held for the commit alone."""
    table = DeltaTable(tables.path(tables.MASTER_LOG))
    join = portion(pa.table(table.get_add_actions(flatten=True)), datetime.fromtimestamp(now, UTC).date())
    if join is None:
        return False
    written = _written(join)
    with turn:
        table.update_incremental()
        data_files.swap(table, join.paths, written, fence.committing, is_new=False)
    log.info("compacted %s of %s: %d files to %d", tables.MASTER_LOG, join.day, len(join.paths), len(written))
    return True


def portion(added: pa.Table, today: date) -> Join | None:
    """What to join next. `added`: the flat add actions of master.log.

    Many of one size, of a day that goes on; of a day that is over, whatever is small.
    """
    groups: dict[tuple[date, str, int], list[Mapping[str, Any]]] = defaultdict(list)
    for file in _joinable(added, today).to_pylist():
        size = int(math.log(max(file["size_bytes"], 1), TIMES)) if file[DAY] >= today else 0
        groups[file[DAY], file["content"], size].append(file)
    for (day, _, _), files in sorted(groups.items(), key=lambda group: group[0]):
        if len(files) >= (MANY_LOG_FILES if day >= today else 2):
            return Join(tuple(_first(sorted(files, key=lambda file: file["min.lsn"] or 0))), day)
    return None


def _joinable(added: pa.Table, today: date) -> pa.Table:
    """The small files of today, and those of a day that is over which has several with the same kind of rows.

    Of years of days that are done, each with its two files, no file becomes a Python object.
    """
    small = added.filter(pc.less(added["size_bytes"], LOG_FILE))
    least, greatest, record = small["min.kind"], small["max.kind"], row_types.RECORD_ROW
    of_one_kind = pc.if_else(pc.equal(least, record), "records", "control")
    content = pc.if_else(pc.equal(least, greatest), of_one_kind, "both")
    files = small.select(["path", DAY, "min.lsn", "size_bytes"]).append_column("content", content)
    is_over = pc.less(files[DAY], today)
    over = files.filter(is_over)
    counted = over.group_by([DAY, "content"]).aggregate([([], "count_all")])
    several = counted.filter(pc.greater(counted["count_all"], 1))
    again = over.join(several, [DAY, "content"], join_type="left semi")
    return pa.concat_tables([again.select(files.column_names).cast(files.schema), files.filter(pc.invert(is_over))])


def _first(files: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The first files that are together as large as a file of the log should be."""
    size = 0
    for file in files:
        if size >= LOG_FILE:
            return
        size += file["size_bytes"]
        yield file["path"]


def _written(join: Join) -> list[Written]:
    root = tables.path(tables.MASTER_LOG)
    is_record = ds.field("kind") == row_types.RECORD_ROW
    with ExitStack() as stack:
        files = []
        for wanted in (is_record, ~is_record):
            file = stack.enter_context(FileWriter(root, ("landed_on", join.day)))
            for rows in row_groups(rows_of(root, join.paths, wanted)):
                file.add(rows)
            files += file.written()
    return files


def rows_of(root: str, paths: Iterable[str], wanted: ds.Expression) -> Iterator[pa.Table]:
    """The rows wanted, file by file; only row groups that have some are read."""
    fs, base = FileSystem.from_uri(root)
    schema = pa.schema([field for field in row_types.LOG if field.name != "landed_on"])
    for path in paths:
        file = ds.dataset(f"{base}/{unquote(path)}", schema, format="parquet", filesystem=fs)
        for batch in in_portions(file, BATCH, wanted):
            yield pa.Table.from_batches([batch])


def row_groups(portions: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, in pieces that are worth a row group."""
    some: list[pa.Table] = []
    size = 0
    for rows in portions:
        some, size = [*some, rows], size + rows.nbytes
        if size >= ROW_GROUP_BYTES:
            yield pa.concat_tables(some)
            some, size = [], 0
    if some:
        yield pa.concat_tables(some)
