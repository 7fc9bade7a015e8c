"""One writer of a table, held by the table itself: each commit carries its writer's epoch as a Delta transaction.

begin -> a commit of its own to each table, with a new epoch -> Fence -> `committing` around every later commit.
From `begin` on nothing of an earlier epoch is committed. A writer that looks at the table finds the newer epoch. One
that looked before (it was paused, or cut off) meets a commit that its own conflicts with. Delta decides, so this holds
between processes and machines that share nothing but the table.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

EPOCH, LSN = "tidemark.epoch", "tidemark.lsn"
TRIES = 20


class Fenced(Exception):
    """A newer writer has taken over, or the lsn is there already; nothing was committed."""


@dataclass(frozen=True)
class Fence:
    """The right of one writer, until a newer epoch begins."""

    epoch: int

    @contextmanager
    def committing(self, table: DeltaTable, lsn: int | None = None) -> Iterator[CommitProperties]:
        """The properties of a commit to `table`, which is up to date; with `lsn`, one that lands it.

        Raises Fenced, before the commit or in its place.
        """
        self._check(table, lsn)
        transactions = [Transaction(EPOCH, self.epoch)]
        transactions += [Transaction(LSN, lsn)] if lsn is not None else []
        try:
            yield CommitProperties(app_transactions=transactions)
        except CommitFailedError:
            table.update_incremental()
            self._check(table, lsn)
            raise

    def _check(self, table: DeltaTable, lsn: int | None) -> None:
        if (now := epoch_of(table)) > self.epoch:
            raise Fenced(
                f"{table.table_uri}: epoch {now} writes it now, epoch {self.epoch} has ended and commits nothing more. "
                "If this happens again and again, two speed applications run: see `tidemark status` on each machine"
            )
        landed = table.transaction_version(LSN)
        if lsn is not None and landed is not None and lsn <= landed:
            raise Fenced(f"{table.table_uri}: lsn {lsn} cannot land, the log has {landed} already")


def epoch_of(table: DeltaTable) -> int:
    """The newest epoch that began on the table; 0 before the first one."""
    return table.transaction_version(EPOCH) or 0


def begin(roots: Sequence[str], at_least: int) -> Fence:
    """Begin a new epoch on the tables, in their order; its number is `at_least` this.

    Raises Fenced where a newer one began meanwhile. It changes a property, as that conflicts with whatever a writer
    with an older view of the table commits.
    """
    for _ in range(TRIES):
        fence = Fence(max(at_least, *(epoch_of(DeltaTable(root)) + 1 for root in roots)))
        try:
            for root in roots:
                table = DeltaTable(root)
                with fence.committing(table) as properties:
                    table.alter.set_table_properties({EPOCH: str(fence.epoch)}, False, commit_properties=properties)
        except CommitFailedError:
            continue  # the writer that it takes over from has just committed
        return fence
    raise Fenced(f"no epoch could begin on {', '.join(roots)}: another writer committed {TRIES} times meanwhile")
