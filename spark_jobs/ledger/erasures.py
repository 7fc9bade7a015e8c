"""Erasures: whose word it was that somebody is forgotten, and how far it has come. The subject itself is not kept.

asked for (revisions land) -> a publication past them -> finished: no file has the records any more.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.orm import Session

from spark_jobs.ledger import turns
from spark_jobs.ledger.database import Sessions
from spark_jobs.ledger.publications import shown_versions
from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.schema import Alarm, Erasure, HotKey, Replay, Request, Run, Verification

ENDED = "publications"
"""In the outcome of an erasure: those that it has ended, be it none. What was said before that is forgotten next."""
QUOTES = ": "
"""In an error or an alarm: what follows may quote what was read."""


class Erasures(Sessions):
    def begin_erasure(self, asked: Erasure) -> int:
        """Keep that records are to be erased; returns its number."""
        with self.write() as session:
            session.add(asked)
            session.flush()
            return asked.id

    def erasures(self, *, newest: int = 20) -> list[Erasure]:
        """The newest first."""
        return self.all(select(Erasure).order_by(Erasure.id.desc()).limit(newest))

    def open_erasures(self) -> list[Erasure]:
        """Those that are not finished; where their revisions have landed meanwhile, they know their lsn.

        One that could not be landed is over: nothing of it was done.
        """
        with self.write() as session:
            found = session.scalars(select(Erasure).where(Erasure.finished_at.is_(None)).order_by(Erasure.id)).all()
            for erasure in (one for one in found if one.lsn is None):
                requests = session.scalars(select(Request).where(Request.id.in_(erasure.requests))).all()
                if refused := [one.answer for one in requests if one.state == "failed"]:
                    erasure.finished_at, erasure.outcome = datetime.now(UTC), refused[0]
                elif all("lsn" in one.answer for one in requests):
                    erasure.lsn = max(int(one.answer["lsn"]) for one in requests)
        return [one for one in found if one.finished_at is None]

    def forget_what_was_said(self, why: str) -> None:
        """Remove what decisions of before have of rows: of builds that nobody published, audits, comparisons, looks,
        requests, errors and alarms, and the hot keys of versions that nobody can read.

        Their counts stay. Runs that failed are superseded, and replays among them cancelled. A look that is at work or
        was cut off goes on, without what it had found.
        """
        with self.write() as session:
            _supersede_failed(session, why)
            _empty_comparisons(session)
            _cut_messages(session, why)
            session.execute(delete(HotKey).where(~tuple_(HotKey.view_id, HotKey.batch_version).in_(shown_versions())))
            session.execute(delete(Verification).where(Verification.finished_at.is_not(None)))
            session.execute(update(Verification).values(findings={}))
            for request in session.scalars(select(Request).where(Request.answered_at.is_not(None))):
                request.arguments = {name: value for name, value in request.arguments.items() if name != "rows"}
        self.compact()

    def note_ended(self, number: int, what: str, ended: Sequence[str | int]) -> None:
        """Keep what it has ended, beside what an earlier try has."""
        with self.write() as session:
            erasure = session.get_one(Erasure, number)
            erasure.outcome = {**erasure.outcome, what: [*erasure.outcome.get(what, ()), *ended]}

    def finish_erasure(self, number: int, outcome: dict[str, Any]) -> dict[str, Any]:
        """All that came of it."""
        with self.write() as session:
            erasure = session.get_one(Erasure, number)
            erasure.finished_at = datetime.now(UTC)
            erasure.outcome = {"pins": [], "publications": [], **erasure.outcome, **outcome}
            return erasure.outcome

    def ended_by_erasure(self, pin: str) -> int | None:
        """The erasure that has ended a pin."""
        return next((one.id for one in self.all(select(Erasure)) if pin in one.outcome.get("pins", ())), None)


def _supersede_failed(session: Session, why: str) -> None:
    for run in session.scalars(select(Run).where(Run.state == "failed")).all():
        turns.supersede(session, run, why)
        replay = session.get(Replay, run.run_id)
        if replay is not None and replay.cancelled_at is None:
            replay.cancelled_by, replay.cancelled_at = why, datetime.now(UTC)


def _empty_comparisons(session: Session) -> None:
    """The rows that audits and replays have named; how many differed, and why, stays."""
    for replay in session.scalars(select(Replay).where(Replay.differences.is_not(None))):
        replay.differences = [{**one, "greatest": []} for one in replay.differences or ()]
    for run in session.scalars(select(Run)):
        if agreements := run.summary.get(AGREEMENT):
            run.summary = {**run.summary, AGREEMENT: [{**one, UNEXPLAINED: []} for one in agreements]}


def _cut_messages(session: Session, why: str) -> None:
    """Keep what errors and alarms say before their first colon and space: what follows may quote a row."""
    for run in session.scalars(select(Run).where(Run.error.contains(QUOTES))):
        run.error = _cut(run.error or "", why)
    for alarm in session.scalars(select(Alarm).where(Alarm.message.contains(QUOTES))):
        alarm.message = _cut(alarm.message, why)


def _cut(message: str, why: str) -> str:
    return f"{message.partition(QUOTES)[0]} [cut by {why}]"
