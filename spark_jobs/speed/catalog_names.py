"""Give the hot tables and the serving views, at a start of the speed layer, the names by which readers reach them.

views, ledger -> statements to the Thrift server, again until it takes them. Landing does not wait for it.
"""

import time

from spark_jobs.ledger import store as ledger
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.registry.views import load_views
from spark_jobs.serving.sql import SqlError, ask, connect
from spark_jobs.speed.status import Status

PAUSE_SECONDS = 1.0


def name_for_readers(store: ledger.Store, status: Status) -> None:
    """Give the names, and return when every one is there; `status` says what is refused meanwhile."""
    while True:
        try:
            with connect() as connection:
                ensure_serving(lambda sql: ask(connection, sql).rows, load_views(), store)
        except (SqlError, ledger.LedgerError) as error:
            status.set_named(refused=str(error))
            time.sleep(PAUSE_SECONDS)
        else:
            status.set_named()
            return
