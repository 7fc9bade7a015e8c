"""What `verify` found: each finding as soon as it is made, so that a look that was cut off can go on."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from spark_jobs.ledger.database import Sessions
from spark_jobs.ledger.erasures import ENDED
from spark_jobs.ledger.schema import Erasure, Verification

WHOLE, SAMPLE = "all", "sample"
UNSAID = {"first": [], "note": "an erasure was at work: its rows are not kept"}
"""Of a finding: the breaches that it names, and what else it says."""
RESUMED_DAYS = 7


class Verifications(Sessions):
    def begin_verification(self, scope: str, seed: int) -> Verification:
        """A new look; one at everything goes on with the newest such that was cut off in the last days."""
        since = datetime.now(UTC) - timedelta(days=RESUMED_DAYS)
        with self.write() as session:
            newest = session.scalars(
                select(Verification).where(Verification.scope == WHOLE).order_by(Verification.id.desc()).limit(1)
            ).first()
            if scope == WHOLE and newest is not None and newest.finished_at is None and newest.begun_at > since:
                return newest
            begun = Verification(scope=scope, seed=seed)
            session.add(begun)
        return begun

    def record_finding(self, verification: int, law: str, finding: Mapping[str, Any]) -> None:
        """Keep it; but for its words, where an erasure has ended what showed somebody since the look began."""
        with self.write() as session:
            of = session.get_one(Verification, verification)
            words = UNSAID if _may_show_somebody(session, of) else {}
            of.findings = {**of.findings, law: {**finding, **words}}

    def finish_verification(self, verification: int, exit_code: int) -> None:
        with self.write() as session:
            of = session.get_one(Verification, verification)
            of.finished_at, of.exit_code = datetime.now(UTC), exit_code

    def last_verdict(self) -> Verification | None:
        """The newest look that found all promises kept, or one broken: neither cut off nor unable to say."""
        of = select(Verification).where(Verification.finished_at.is_not(None), Verification.exit_code.in_((0, 1)))
        return self.first(of.order_by(Verification.id.desc()))

    def last_verification(self) -> Verification | None:
        """The newest look, cut off or not."""
        return self.first(select(Verification).order_by(Verification.id.desc()))


def _may_show_somebody(session: Session, look: Verification) -> bool:
    """Whether rows that it read may be of somebody whom an erasure has made the ledger forget."""
    later = Erasure.finished_at.is_(None) | (Erasure.finished_at > look.begun_at)
    return any(ENDED in erasure.outcome for erasure in session.scalars(select(Erasure).where(later)))
