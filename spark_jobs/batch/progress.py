"""While Spark's tasks of a run are at work, people see how far they are, and the ledger that the run lives."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from pyspark.sql import SparkSession

from spark_jobs.ledger.store import Store
from spark_jobs.storage import task_files

Say = Callable[[str], None]


def watched(spark: SparkSession, store: Store, run_id: str, what: str, say: Say) -> AbstractContextManager[None]:
    """Raises LedgerError, and ends the tasks, once the run is superseded."""

    def tell(done: int, of: int) -> None:
        store.progress(run_id)
        say(f"{what}: {done} of {of} tasks are done")

    return task_files.watched(spark, tell)
