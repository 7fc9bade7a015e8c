"""One writer: the application holds a file lock with each of the two processes that write, JVM and Python.

A lock held by Python alone would be free as soon as Python dies, while the JVM below it may still finish a commit; one
held by the JVM alone would be free while Python still finishes one.
"""

import fcntl
import time
from typing import IO, Any, cast

from pyspark.sql import SparkSession

from spark_jobs.settings import settings


def acquire(spark: SparkSession, wait_seconds: float = 60) -> Any:
    """Take both locks, waiting for a dying predecessor. Keep a reference to what is returned.

    Raises RuntimeError if another application still holds one after `wait_seconds`.
    """
    folder, jvm = settings().run_dir, cast(Any, spark._jvm)
    folder.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_seconds
    file = (folder / "speed.python.lease").open("w")
    while not _locked(file):
        _wait(deadline)
    channel = jvm.java.io.RandomAccessFile(str(folder / "speed.jvm.lease"), "rw").getChannel()
    while (lock := channel.tryLock()) is None:
        _wait(deadline)
    return file, lock


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(f"another speed application writes under {settings().home}; `tidemark status` names it")
    time.sleep(0.2)
