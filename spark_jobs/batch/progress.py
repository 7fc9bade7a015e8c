"""While a run is at work: people see how far it is, and nobody else commits to the tables that it writes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from deltalake import CommitProperties, DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.ledger.leases import Held
from spark_jobs.ledger.store import Store
from spark_jobs.storage import task_files
from spark_jobs.storage.data_files import Committing
from spark_jobs.storage.fencing import Fence

Say = Callable[[str], None]


def fenced(held: Held) -> Committing:
    """Commits of the process that holds the tables.

    A process that lost them (it was paused, and another took over) is refused by the ledger, or, if it was paused after
    that, by the table, where the other has committed since this one read it.
    """

    @contextmanager
    def committing(read: DeltaTable) -> Iterator[CommitProperties]:
        held.renew()
        with Fence(held.number).committing(read) as properties:
            yield properties

    return committing


def watched(spark: SparkSession, store: Store, run_id: str, what: str, say: Say) -> AbstractContextManager[None]:
    """Raises LedgerError, and ends the tasks, once the run is superseded."""

    def tell(done: int, of: int) -> None:
        store.progress(run_id)
        say(f"{what}: {done} of {of} tasks are done")

    return task_files.watched(spark, tell)
