"""One writer: the application holds a file lock with each of the two processes that write, JVM and Python.

A lock held by Python alone would be free as soon as Python dies, while the JVM below it may still finish a commit; one
held by the JVM alone would be free while Python still finishes one.
"""

import fcntl
import time
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.settings import settings


def acquire(spark: SparkSession, wait_seconds: float = 60) -> Any:
    """Take both locks, waiting for a dying predecessor. Keep a reference to what is returned.

    Raises RuntimeError if another application still holds one after `wait_seconds`.
    """
    settings().run_dir.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_seconds
    return _python_lock(deadline), _jvm_lock(spark, deadline)


def _python_lock(deadline: float) -> Any:
    file = (settings().run_dir / "speed.python.lease").open("w")
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            _wait(deadline)


def _jvm_lock(spark: SparkSession, deadline: float) -> Any:
    jvm: Any = spark._jvm
    channel = jvm.java.io.RandomAccessFile(str(settings().run_dir / "speed.jvm.lease"), "rw").getChannel()
    while (lock := channel.tryLock()) is None:
        _wait(deadline)
    return lock


def _wait(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise RuntimeError(f"another speed application writes under {settings().home}; `tidemark status` names it")
    time.sleep(0.2)
