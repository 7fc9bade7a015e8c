"""Compact the hot tables, beside the micro-batches.

speed.partials: the files that micro-batches committed -> per span and kind of row one file, with that kind's columns
alone. master.log: small files of a day -> larger ones. The rows stay the same, and their order has no meaning.

A reader of a view opens one narrow file per span instead of a wide one per micro-batch.
"""

import logging
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from spark_jobs.settings import settings
from spark_jobs.speed.partials_table import OPEN, SPAN, in_window
from spark_jobs.storage import coverage, data_files, tables
from spark_jobs.storage.data_files import ROW_GROUP, FileWriter, Written
from spark_jobs.storage.fencing import Fence

log = logging.getLogger("tidemark.speed.compaction")

MANY_COMMITS = 16
"""Files of so many micro-batches wait for compaction: a reader opens them all, and each costs milliseconds."""
MANY_LOG_FILES = 100
"""So many small files of a day wait; the log has no reader in a hurry."""
LOG_FILE = 16 * 2**20
"""Bytes; a file of the log that is larger is not written again."""


def current_span() -> int:
    """The span of rows that are compacted now; a span lasts `span_seconds`."""
    return int(time.time()) // settings().span_seconds


def compact(turn: threading.Lock, fence: Fence) -> None:
    """Compact whatever is worth it. `turn` is held for the commits of partials alone."""
    partials = DeltaTable(tables.path(tables.SPEED_PARTIALS))
    for span in fragmented(pa.table(partials.get_add_actions(flatten=True)), current_span()):
        _join(span, current_span() if span == OPEN else span, turn, fence)
    master_log = DeltaTable(tables.path(tables.MASTER_LOG))
    files = pa.table(master_log.get_add_actions(flatten=True))
    small = files.filter(pc.less(files["size_bytes"], LOG_FILE))["partition.landed_on"]
    for day, count in Counter(small.to_pylist()).items():
        if count >= MANY_LOG_FILES:
            master_log.optimize.compact(partition_filters=[("landed_on", "=", f"{day:%Y-%m-%d}")], target_size=LOG_FILE)
            log.info("compacted %s of %s: %d small files", tables.MASTER_LOG, day, count)


def trim(up_to_lsn: int, turn: threading.Lock, fence: Fence) -> None:
    """Remove the compacted files whose rows are all published, as far as the window of known ids does not need them.

    File by file: nothing is read or written again.
    """
    newest = max(coverage.covered(up_to_lsn), default=up_to_lsn)
    needed_from = next((lsn for lsn, _ in in_window(newest)), newest + 1)
    with turn:
        table = DeltaTable(tables.path(tables.SPEED_PARTIALS))
        files = pa.table(table.get_add_actions(flatten=True))
        old = pc.less_equal(files["max.lsn"], min(up_to_lsn, needed_from - 1))
        if removed := files.filter(pc.and_(old, pc.greater(files["partition.span"], OPEN)))["path"].to_pylist():
            data_files.swap(table, removed, (), fence.committing)


def fragmented(added: pa.Table, now: int) -> list[int]:
    """Spans to compact, OPEN first. `added`: the flat add actions of speed.partials; `now`: the current span."""
    spans = added["partition.span"].to_pylist()
    of_kind = Counter(zip(spans, added["min.view"].to_pylist(), strict=True))
    again = {span for (span, _), count in of_kind.items() if span not in (OPEN, now) and count > 1}
    return [OPEN] * (spans.count(OPEN) >= MANY_COMMITS) + sorted(again)


def _join(span: int, into: int, turn: threading.Lock, fence: Fence) -> None:
    """Join the files of a span, in one version, to one per kind of row in the span `into`."""
    table = DeltaTable(tables.path(tables.SPEED_PARTIALS))
    files = pa.table(table.get_add_actions(flatten=True))
    joined = files.filter(pc.equal(files["partition.span"], span))["path"].to_pylist()
    there = table.to_pyarrow_dataset(file_pruning_predicate=[(SPAN, "=", str(span))])
    written = [file for kind, rows in _by_kind(there).items() for file in _written(kind, rows, into)]
    with turn:  # between a micro-batch's look at the table and its commit, removed files would be a conflict
        table.update_incremental()
        data_files.swap(table, joined, written, fence.committing, is_new=False)
    log.info("compacted %s of span %d: %d files", tables.SPEED_PARTIALS, span, len(written))


def _by_kind(there: ds.Dataset) -> dict[str, pa.Table]:
    parts: dict[str, list[pa.Table]] = defaultdict(list)
    for rows in _read(there):
        for kind in pc.unique(rows["view"]).to_pylist():
            own = ["view", "lsn", kind if kind in rows.column_names else "control"]
            parts[kind].append(rows.filter(pc.equal(rows["view"], kind)).select(own))
    return {kind: pa.concat_tables(tables) for kind, tables in parts.items()}


def _read(there: ds.Dataset) -> Iterator[pa.Table]:
    """The rows, file by file, with the columns that the file has."""
    for file in there.get_fragments():
        columns = pa.schema([there.schema.field(name) for name in file.physical_schema.names])
        for batch in file.to_batches(schema=columns):
            yield pa.Table.from_batches([batch])


def _written(kind: str, rows: pa.Table, span: int) -> list[Written]:
    if kind in rows.column_names:
        key = rows[kind].combine_chunks().field(0)
        rows = rows.take(pc.sort_indices(key))
    with FileWriter(tables.path(tables.SPEED_PARTIALS), (SPAN, span), row_group=ROW_GROUP) as file:
        file.add(rows)
        return file.written()
