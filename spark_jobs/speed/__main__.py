"""Run the speed application: `python -m spark_jobs.speed`.

lease, session, locks -> SpeedLayer -> exit code. It ends on any exception of a micro-batch; the supervisor starts it
again, and the start catches up.
"""

import logging
import socket
import sys

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.leases import kept_alive
from spark_jobs.messaging import security
from spark_jobs.messaging.broker import Broker
from spark_jobs.settings import settings
from spark_jobs.speed import callbacks, lease
from spark_jobs.speed.app import SpeedLayer
from spark_jobs.storage.session import driver, spark_session
from spark_jobs.storage.task_files import ARROW_ROWS

log = logging.getLogger("tidemark.speed")

ONE_APPLICATION = "the speed layer"
WAIT_SECONDS = 90.0
"""Longer than the lease of an application that was killed on another machine."""

PROPERTIES = {
    # Readers' names are the Thrift server's business; a metastore client would be a tenth of this JVM's start.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
    # How often an idle query asks Kafka for news; the default, 10 ms, takes a third of a core for nothing.
    "spark.sql.streaming.pollingDelay": "50ms",
}


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    for noisy in ("kafka", "py4j"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    store = ledger.open()
    holder = f"{socket.gethostname()}:{settings().run_dir}"
    try:
        # Before anything else: an application that waits here has not touched what the other one writes.
        with store.holding(ONE_APPLICATION, WAIT_SECONDS, holder) as held, kept_alive(held, lambda: None):
            return _run(store)
    except ledger.Busy as error:
        log.error("%s; or it was killed there, and the next try goes on", error)
        return 1


def _run(store: ledger.Store) -> int:
    jvm = driver(settings(), settings().speed_memory_mb, settings().server_java_options)
    spark = spark_session("tidemark-speed", **PROPERTIES, **jvm)
    callbacks.guard(spark)
    locks = lease.acquire(spark)
    broker = Broker(project_contracts().topics)
    layer = SpeedLayer(spark, store, broker)
    layer.status.keep_beating()
    try:
        store.reopen_requests()
        layer.prepare()
        layer.run()
    except Exception as error:
        layer.status.set(state="stopped", error=security.explained(error))
        log.exception("the speed application stops; nothing that was landed is lost")
        return 1
    finally:
        layer.close()
        broker.close()
        spark.stop()
        del locks
    return 0


if __name__ == "__main__":
    sys.exit(main())
