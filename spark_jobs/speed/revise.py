"""Ask the speed application, the log's only writer, to land revisions; and what it does with such a request.

Revisions -> a request in the ledger -> landed at an lsn of their own, once -> the answer: which lsn.
"""

import base64
import datetime as dt
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pyarrow as pa

from spark_jobs.contracts import revision_rows
from spark_jobs.contracts.revisions import Revision
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.ledger.schema import Request
from spark_jobs.ledger.store import Store

REVISE = "revise"
MOST = 10_000
"""Revisions in a request: they are a row of the ledger, and of one micro-batch."""

Land = Callable[[Sequence[Revision]], int]
"""Lands revisions with the next lsn, which it returns; their own is 0."""


def ask(store: Store, said: Sequence[Revision]) -> int:
    """Ask for revisions, MOST at most; returns the number of the request."""
    name = uuid4().hex
    rows = revision_rows.rows([replace(one, request=name) for one in said], dt.date.min)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return store.request(REVISE, name=name, rows=base64.b64encode(sink.getvalue()).decode())


def asked(arguments: dict[str, Any]) -> Sequence[Revision]:
    """The revisions of a request."""
    rows = pa.ipc.open_stream(base64.b64decode(arguments["rows"])).read_all()
    return revision_rows.from_rows(rows.to_pylist()).entries


class Reviser:
    """Answers requests between micro-batches. `known`: gives the history so far, `turn`: the micro-batches' lock.

    An application that died between landing and answering finds the request's name in the log when it starts again.
    """

    def __init__(self, store: Store, turn: threading.Lock, known: Callable[[], SchemaHistory], land: Land) -> None:
        self._store, self._turn, self._known, self._land = store, turn, known, land

    def answer(self) -> None:
        """Answer every waiting request; whoever asked for what cannot be landed is told why."""
        while (request := self._store.next_request(REVISE)) is not None:
            try:
                with self._turn:
                    lsn = self._landed(request) or self._land(asked(request.arguments))
            except Exception as error:
                self._store.answer_request(request.id, {"error": str(error) or repr(error)}, failed=True)
                raise
            self._store.answer_request(request.id, {"lsn": lsn})

    def _landed(self, request: Request) -> int | None:
        known = self._known().revisions
        return next((said.lsn for said in known.entries if said.request == request.arguments["name"]), None)
