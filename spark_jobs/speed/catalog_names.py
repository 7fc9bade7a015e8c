"""Keep the names by which readers reach hot tables, serving views and pins, beside the query of the speed layer.

views, ledger -> statements to the Thrift server, again and again: what another client dropped comes back.
"""

import logging
import threading
from functools import partial
from typing import Any

from spark_jobs.ledger import store as ledger
from spark_jobs.publication.pin_names import PinNames
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.registry.views import project_views
from spark_jobs.serving.sql import ask, connect
from spark_jobs.speed.status import JOIN_SECONDS, NOT_SERVED, Status

log = logging.getLogger("tidemark.speed.names")

LOOK_SECONDS = 60.0
SOON_SECONDS = 1.0
FILLING_SECONDS = 10.0
"""At most, while views wait for partials: those of a rollback may wait until the next run."""
LOST = "names that were lost"
LEFT = "names that are left"


class NamesForReaders:
    """A thread: landing does not wait for it, and nothing that it meets ends it."""

    def __init__(self, store: ledger.Store, status: Status) -> None:
        self._store, self._status = store, status
        self._views = project_views()
        self._pins = PinNames(self._views, store)
        self._ended, self._refused = threading.Event(), set[str]()
        self._waiting, self._pause = tuple[str, ...](), SOON_SECONDS
        self._thread = threading.Thread(target=self._run, name="names", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        self._thread.join(timeout=JOIN_SECONDS)

    def _run(self) -> None:
        while not self._ended.wait(self._look()):
            pass

    def _look(self) -> float:
        """Give the names that lack; returns the seconds until the next look."""
        try:
            with connect() as connection:
                execute = partial(_rows, connection)
                named = ensure_serving(execute, self._views, self._store)
                of_pins = self._pins.mend(execute)
        except Exception as error:
            log.warning("names for readers: %s", error, exc_info=not isinstance(error, ledger.LedgerError))
            self._status.set_named(refused=(str(error) or repr(error)).splitlines()[0])
            return SOON_SECONDS
        lost, refused = ", ".join([*named.lost, *of_pins.lost]), {**named.refused, **of_pins.refused}
        self._status.problem(LOST, f"{lost}: somebody dropped them; they are back" if lost else None)
        stale = "answers by its last build: nobody computes its version, whose file is gone"
        self._status.problem(LEFT, f"{', '.join(named.left)} {stale}" if named.left else None)
        for name in self._refused | refused.keys():
            self._status.problem(f"{NOT_SERVED}{name}", refused.get(name))
        self._refused = {*refused}
        self._status.set(filling=named.waiting)
        self._status.set_named()
        stays = named.waiting == self._waiting
        self._waiting, self._pause = named.waiting, min(2 * self._pause, FILLING_SECONDS) if stays else SOON_SECONDS
        return self._pause if named.waiting else LOOK_SECONDS


def _rows(connection: Any, statement: str) -> list[tuple[Any, ...]]:
    return ask(connection, statement).rows
