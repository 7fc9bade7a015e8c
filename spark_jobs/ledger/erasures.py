"""Erasures: whose word it was that somebody is forgotten, and how far it has come. The subject itself is not kept.

asked for (revisions land) -> a publication past them -> finished: no file has the records any more.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, select

from spark_jobs.ledger import turns
from spark_jobs.ledger.database import Sessions
from spark_jobs.ledger.schema import Erasure, Replay, Request, Run, Verification


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
        """Remove what decisions of before have of rows: of builds that nobody published, comparisons, looks, requests.

        Their counts stay. Runs that failed are superseded, and replays among them cancelled.
        """
        with self.write() as session:
            for run in session.scalars(select(Run).where(Run.state == "failed")).all():
                turns.supersede(session, run, why)
                replay = session.get(Replay, run.run_id)
                if replay is not None and replay.cancelled_at is None:
                    replay.cancelled_by, replay.cancelled_at = why, datetime.now(UTC)
            for replay in session.scalars(select(Replay).where(Replay.differences.is_not(None))):
                replay.differences = [{**one, "greatest": []} for one in replay.differences or ()]
            session.execute(delete(Verification).where(Verification.finished_at.is_not(None)))
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
