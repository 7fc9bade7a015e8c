"""Beside the micro-batches: compaction, trimming, and what somebody asks for.

clock + ledger requests -> compaction and trimming of the hot tables, and `answer`. What removes a file of them is
committed under the turn of the micro-batches: two commits at a time would be a conflict where one of them removes.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection
from typing import Any, Self

from spark_jobs.definitions.bound_view import View
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.speed import compaction, trimming
from spark_jobs.speed.status import Status
from spark_jobs.storage.fencing import Fence

log = logging.getLogger("tidemark.speed.housekeeping")

PROBLEM = "housekeeping"
TRIM, ERASE = "trim", "erase"
"""Requests with an lsn up to which somebody wants it."""
TRIM_SECONDS = 3600
"""Between two looks for publications whose readers are gone."""


class Housekeeping:
    """A thread beside the query; `turn` is the lock that a micro-batch holds. `views`: those that are computed.

    answer: of other requests.

    erase: takes out what was erased up to an lsn, and returns how many records.
    """

    def __init__(
        self,
        store: Store,
        views: Collection[View],
        status: Status,
        turn: threading.Lock,
        fence: Fence,
        answer: Callable[[], None],
        erase: Callable[[int], int],
    ) -> None:
        self._store, self._views, self._status, self._turn, self._fence = store, views, status, turn, fence
        self._answer = answer
        self._asked = {TRIM: self._trim, ERASE: lambda upto: {"records": erase(upto)}}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="housekeeping", daemon=True)
        self._trims_at = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stopped.wait(settings().heartbeat_seconds):
            try:
                compaction.compact(self._turn, self._fence)
                self._answer()
                for kind, does in self._asked.items():
                    self._do_if_asked(kind, does)
                if time.monotonic() >= self._trims_at:
                    self._trims_at = time.monotonic() + TRIM_SECONDS
                    trimming.trim_unread(self._store, self._views, self._turn, self._fence)
            except Exception as error:
                log.exception("housekeeping goes on after an error")
                self._status.problem(PROBLEM, (str(error) or repr(error)).splitlines()[0])
            else:
                self._status.problem(PROBLEM, None)

    def _do_if_asked(self, kind: str, does: Callable[[int], dict[str, Any]]) -> None:
        if (request := self._store.next_request(kind)) is None:
            return
        try:
            answer = does(int(request.arguments["up_to_lsn"]))
        except Exception as error:
            self._store.answer_request(request.id, {"error": str(error)}, failed=True)
            raise
        self._store.answer_request(request.id, answer)

    def _trim(self, up_to_lsn: int) -> dict[str, Any]:
        """As far as it may be now: a view may have come since somebody asked."""
        up_to_lsn = trimming.unread(self._store, self._views, up_to_lsn)
        trimming.trim(up_to_lsn, self._turn, self._fence)
        return {"trimmed_up_to": up_to_lsn, "files_removed": trimming.vacuum_hot_tables()}
