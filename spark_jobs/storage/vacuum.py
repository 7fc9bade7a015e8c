"""Remove the files of a Delta table that no kept version names; only the table's writer may do so.

table, hours, versions to keep -> delta-rs -> number of files removed.
"""

from collections.abc import Sequence

from deltalake import DeltaTable

from spark_jobs.storage import tables


def vacuum(table: str, hours: int, keep: Sequence[int] = ()) -> int:
    """Remove files older than `hours` that no version in `keep` nor the newest one names; returns how many.

    Files that no version ever named go too: a process that dies before its commit leaves such files.
    """
    if not DeltaTable.is_deltatable(tables.path(table)):
        return 0
    delta = DeltaTable(tables.path(table))
    rule = {
        "retention_hours": hours,
        "enforce_retention_duration": False,
        "keep_versions": list(keep),
        "full": True,
    }
    if not delta.vacuum(dry_run=True, **rule):
        return 0  # a vacuum of nothing would still add two versions
    return len(delta.vacuum(dry_run=False, **rule))
