"""Trim speed.partials: remove the files whose rows nobody reads any more, by itself or on request.

publications that are not expired -> the lowest cut among them -> files at and below it leave the table -> vacuum. A
publication that readers may still see, go back to, or have pinned keeps all partials past its cut.
"""

import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.definitions.bound_view import View
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.speed.partials_table import OPEN, in_window
from spark_jobs.storage import data_files, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.vacuum import UNREAD_HOURS, vacuum

TOLD_DAYS = 90
"""How long the ledger keeps requests, epochs, and builds that nobody can read any more."""


def unread(store: Store, views: Iterable[View], upto: int | None = None) -> int:
    """The lsn up to which nobody reads partials, at most `upto`; 0 while a view is in no publication yet.

    Such a view has been caught up from the first lsn on, and readers will be given all of it.
    """
    shown = store.current_sources()
    if any(view.id not in shown for view in views):
        return 0
    lowest = store.lowest_live_cut()
    return lowest if upto is None else min(lowest, upto)


def trim_unread(store: Store, views: Iterable[View], turn: threading.Lock, fence: Fence) -> None:
    """Trim without being asked, and let the ledger forget what is long over.

    A publication too old to go back to is marked as expired first, so that nobody goes back to it meanwhile.
    """
    now = datetime.now(UTC)
    store.expire_publications(now - timedelta(days=settings().publications_kept_days))
    trim(unread(store, views), turn, fence)
    vacuum_hot_tables()
    store.forget_messages(now - timedelta(days=TOLD_DAYS))
    store.forget_builds(now - timedelta(days=TOLD_DAYS))


def trim(up_to_lsn: int, turn: threading.Lock, fence: Fence) -> int:
    """Remove the compacted files whose rows are all published, as far as the window of known ids does not need them.

    File by file, of whatever period: nothing is read or written again. Returns how many.
    """
    table = DeltaTable(tables.path(tables.SPEED_PARTIALS))
    newest = max(pc.max(pa.table(table.get_add_actions(flatten=True))["max.lsn"]).as_py() or 0, up_to_lsn)
    needed_from = next((lsn for lsn, _ in in_window(newest)), newest + 1)
    with turn:
        table.update_incremental()
        files = pa.table(table.get_add_actions(flatten=True))
        old = pc.less_equal(files["max.lsn"], min(up_to_lsn, needed_from - 1))
        if removed := files.filter(pc.and_(old, pc.greater(files["partition.span"], OPEN)))["path"].to_pylist():
            data_files.swap(table, removed, (), fence.committing)
    return len(removed)


def vacuum_hot_tables() -> dict[str, int]:
    """Remove the files that no version names any more; how many, by table.

    Outside the turn: it lists whole tables, and touches no file that a micro-batch writes or reads.
    """
    hot = (tables.MASTER_LOG, tables.SPEED_PARTIALS)
    return {table: vacuum(tables.path(table), UNREAD_HOURS) for table in hot}
