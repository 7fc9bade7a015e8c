"""NIGHTS: what the ledger's frequent questions cost after a month of nightly runs, and after ten years of them.

rows as nights leave them -> an SQLite ledger -> each question, CPU milliseconds.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import URL, insert

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.schema import Alarm, Audit, Base, Build, Publication, PublicationView, Run, Verification
from spark_jobs.ledger.store import Store

VIEWS = [f"view_{number}" for number in range(40)]
LIVE, BUILDS_KEPT = 30, 90
REPEATS = 20
AGREED = [{"view": view, "rows": 1000, "differing": 3, "causes": {"late": 3}, "unexplained": []} for view in VIEWS]
LAWS = {f"I{number}": {"status": "holds", "rows": 1000, "seconds": 0.1, "said": "as promised"} for number in range(88)}


COUNTED = "publications of each kind"
"""Counts them all, once for each look at the metrics."""
QUESTIONS: dict[str, Callable[[Store], object]] = {
    "sources of the publication in force": Store.current_sources,
    "lowest cut that somebody reads": Store.lowest_live_cut,
    "lsn up to which facts are complete": Store.decoded_cut,
    "runs since the sources were built": lambda store: store.runs_since_built("new", store.current_sources()),
    "runs since the publication in force": lambda store: store.runs_since_base("new"),
    "publications that may be read": Store.live_publications,
    "newest runs": Store.runs,
    "newest verdict": Store.last_audit,
    "what rings": Store.raised_alarms,
    "a request that waits": lambda store: store.next_request("trim"),
    "heartbeat": lambda store: store.heartbeat("speed"),
    COUNTED: Store.publications_of_each_kind,
}


def nights(kept: tuple[int, ...], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row per question, a column per number of nights that the ledger keeps."""
    rows: dict[str, dict[str, Any]] = {}
    for number in kept:
        with tempfile.TemporaryDirectory(prefix="tidemark-nights-") as folder:
            file = Path(folder, "ledger.db")
            store = ledger.open(URL.create("sqlite+pysqlite", database=str(file)))
            fill(store, number)
            for name, ask in QUESTIONS.items():
                rows.setdefault(name, {"question": name})[f"{number:,} nights, ms"] = round(_cpu(ask, store), 2)
            store.close()  # what the log beside it holds goes into the file
            say(f"{number:,} nights: {file.stat().st_size / 2**20:,.0f} MiB")
    return list(rows.values())


def fill(store: Store, number: int) -> None:
    """The rows of so many nights, of which the last LIVE may be read and the last BUILDS_KEPT have their builds."""
    begin = datetime.now(UTC) - timedelta(days=number)
    with store.write() as session:
        for table, rows in _rows(number, begin):
            session.execute(insert(Base.metadata.tables[table]), list(rows))


Rows = Iterator[tuple[str, Iterator[dict[str, Any]]]]
"""A table's name, and its rows."""


def _rows(number: int, begin: datetime) -> Rows:
    at = [begin + timedelta(days=night) for night in range(number)]
    yield from _of_runs(at)
    yield from _of_publications(at)
    yield from _of_looks(at)


def _of_runs(at: list[datetime]) -> Rows:
    every = range(len(at))
    run = {"mode": "changed", "days": [], "state": "finished", "step": "publish", "summary": {AGREEMENT: AGREED}}
    about = {"mode": "changed", "horizon": None, "results_version": None, "row_count": 1, "seconds": 1.0}
    begun = ({"run_id": f"r{n}", "started_at": at[n], "progressed_at": at[n], **_cuts(n), **run} for n in every)
    yield Run.__tablename__, begun
    yield Audit.__tablename__, ({"run_id": f"r{n}", "passed": True, "warnings": 0, "at": at[n]} for n in every)
    built = ({"run_id": f"r{n}", "cut": n * 100 + 100, "batch_version": n, "finished_at": at[n]} | about
             for n in every[-BUILDS_KEPT:])  # fmt: skip
    yield Build.__tablename__, (build | {"view_id": view} for build in built for view in VIEWS)


def _cuts(night: int) -> dict[str, int]:
    return {"previous_cut": night * 100, "cut": night * 100 + 100}


def _of_publications(at: list[datetime]) -> Rows:
    every = range(len(at))
    states = ["expired" if night < len(at) - LIVE else "done" for night in every]
    about = ({"id": n, "run_id": f"r{n}", "cut": n * 100 + 100, "state": states[n], "done_at": at[n]} for n in every)
    yield Publication.__tablename__, (publication | {"kind": "batch"} for publication in about)
    shown = ({"publication_id": n, "batch_version": n, "cut": n * 100 + 100} for n in every)
    yield PublicationView.__tablename__, (source | {"view_id": view} for source in shown for view in VIEWS)


def _of_looks(at: list[datetime]) -> Rows:
    about = {"scope": "sample", "exit_code": 0, "findings": LAWS}
    looks = ({"seed": n, "begun_at": day, "finished_at": day, **about} for n, day in enumerate(at))
    yield Verification.__tablename__, looks
    moments = ("raised_at", "cleared_at", "raise_told_at", "clearing_told_at")
    alarm = {"name": "lag: orders", "message": "late", "runbook": ""}
    yield Alarm.__tablename__, (alarm | dict.fromkeys(moments, day) for day in at[-BUILDS_KEPT:])


def _cpu(ask: Callable[[Store], object], store: Store) -> float:
    """The median of some turns; the first one, which prepares the statements, does not count."""
    taken = []
    for _ in range(REPEATS + 1):
        begun = time.process_time()
        ask(store)
        taken.append((time.process_time() - begun) * 1000)
    return statistics.median(taken[1:])
