"""Remove the files of a Delta table that no reader can come back for.

versions that are needed + the newest -> the files that they name stay, younger ones too -> the rest is deleted.
"""

from collections.abc import Sequence

from deltalake import DeltaTable

UNREAD_HOURS = 24
"""How long a file stays that no version in need names; every reader is faster."""


def vacuum(root: str, hours: int, keep: Sequence[int] = ()) -> int:
    """Remove files of the table at `root` older than `hours` that no version in `keep` nor the newest one names.

    Returns how many; 0 where there is no table. Only the table's writer may do so. Files that a process left when it
    died before its commit go too. A file's hours begin when it was removed, where Delta's log still says when that was,
    else when it was written.
    """
    if not DeltaTable.is_deltatable(root):
        return 0
    table = DeltaTable(root)
    rule = {"retention_hours": hours, "enforce_retention_duration": False, "keep_versions": list(keep), "full": True}
    if not table.vacuum(dry_run=True, **rule):
        return 0  # a vacuum of nothing would still add two versions
    return len(table.vacuum(dry_run=False, **rule))
