"""Turns: one batch run is at work at a time, and one that begins takes over the days of those that wait.

A run finds another at work: it waits, and its days are written down -> the next run that begins takes them over -> that
run ends: the one that waited is merged, and has nothing more to do. Where that run fails or dies, its days wait again
with all that it took over. Everything here is part of its caller's transaction, and writers go one by one: so a day
waits, or is with a run that is alive.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from spark_jobs.ledger.database import LedgerError
from spark_jobs.ledger.leases import Busy
from spark_jobs.ledger.schema import Audit, Publication, Run, WaitingRun
from spark_jobs.orchestration.interface import MERGED_INTO
from spark_jobs.settings import settings

MERGEABLE = "mergeable"
"""In a run's summary: it builds what is new, and its days from raw bytes, so that any other such run can do it."""
TAKEN_OVER = "taken_over"
"""The same: the runs whose days it has taken over."""
DAG_RUN = "dag_run"
"""The same: what Airflow calls it, where Airflow has started it."""


class RunActive(Busy):
    """Another run is at work: try again when it has ended."""


class NothingToDo(LedgerError):
    """There is nothing for this run, which is no fault."""


class Merged(NothingToDo):
    """Another run has done the days of this one, which has nothing more to do."""


def turn(session: Session, run_id: str, now: datetime) -> Run | None:
    """The run, if it was begun. Another run that is stale is superseded here.

    Raises RunActive while another run is at work, Merged once the one that has taken this one over is done.
    """
    run, taker = session.get(Run, run_id), _taker(session, run_id)
    if taker is not None and taker.state == "finished":
        raise Merged(_merged(session, run_id, taker))
    if run is not None and run.state == "superseded" and (taker is None or not _lives(taker, now)):
        raise LedgerError(f"run {run_id} is superseded ({run.error}); plan a run with another id")
    for other in session.scalars(select(Run).where(Run.state == "active", Run.run_id != run_id)):
        if _lives(other, now):
            what = ", and does the days of this one as well" if other is taker else ""
            at_work = f"step {other.step}, {other.progressed_at:%H:%M:%S} UTC"
            raise RunActive(f"run {_named(other)} is active ({at_work}){what}")
        supersede(session, other, f"no progress since {other.progressed_at}; run {run_id} began")
    return run


def supersede(session: Session, run: Run, why: str) -> None:
    """Nothing more of it counts. Its days wait for another run, unless its audit has refused them."""
    run.state, run.error = "superseded", why
    audit = session.get(Audit, run.run_id)
    if _is_mergeable(run) and (audit is None or audit.passed):
        session.merge(WaitingRun(run_id=run.run_id, days=run.days, since=run.started_at, taken_by=None))


def wait(session: Session, planned: Run, since: datetime, others: Mapping[str, str]) -> None:
    """Write down that a run waits, and with which days; and the `others` that it speaks for (id -> day); each once."""
    if not _is_mergeable(planned):
        return
    for run_id, days in {planned.run_id: planned.days, **{other: [day] for other, day in others.items()}}.items():
        if (session.get(Run, run_id), session.get(WaitingRun, run_id)) == (None, None):
            session.add(WaitingRun(run_id=run_id, days=days, since=since, taken_by=None))


def take_over(session: Session, run: Run, before: datetime) -> None:
    """The run begins, with the days of all that have been waiting since before the time at which its cut was chosen.

    Days that an audit has refused together are not taken over again: their runs build them one by one.
    """
    if (own := session.get(WaitingRun, run.run_id)) is not None:
        session.delete(own)
    if not _is_mergeable(run):
        return
    free = (
        select(WaitingRun)
        .outerjoin(Run, Run.run_id == WaitingRun.taken_by)
        .outerjoin(Audit, Audit.run_id == WaitingRun.taken_by)
        .where(WaitingRun.run_id != run.run_id, WaitingRun.since <= before)
        .where(Run.run_id.is_(None) | (Run.state == "superseded"), Audit.passed.is_not(False))
        .order_by(WaitingRun.since)
    )
    taken = session.scalars(free).all()
    for waiting in taken:
        waiting.taken_by = run.run_id
    run.days = sorted({*run.days, *(day for waiting in taken for day in waiting.days)})
    run.summary = {**run.summary, TAKEN_OVER: [waiting.run_id for waiting in taken]}


def _is_mergeable(run: Run) -> bool:
    """A plan that is not written yet may have no summary."""
    return bool((run.summary or {}).get(MERGEABLE))


def _taker(session: Session, run_id: str) -> Run | None:
    waiting = session.get(WaitingRun, run_id)
    return None if waiting is None or waiting.taken_by is None else session.get(Run, waiting.taken_by)


def _lives(run: Run, now: datetime) -> bool:
    return run.state == "active" and now - run.progressed_at < timedelta(minutes=settings().batch_stale_minutes)


def _merged(session: Session, run_id: str, taker: Run) -> str:
    shown = session.scalar(select(Publication.id).where(Publication.run_id == taker.run_id))
    by = "nothing was new" if shown is None else f"publication {shown} shows them"
    return f"run {run_id} is {MERGED_INTO} {_named(taker)}, which has done its days: {by}"


def _named(run: Run) -> str:
    """Its id, and what Airflow calls it."""
    return run.run_id + (f" ({name})" if (name := run.summary.get(DAG_RUN)) else "")
