"""What the ledger forgets: what is long over, and what no reader, no run and no way back refers to.

Decisions go from the oldest on, up to the first that is still needed, so ids of publications have no gaps. Texts of
views, promotions of views, and what has a row per name stay: they grow with what people write, not with time.
"""

from datetime import datetime

from sqlalchemy import CompoundSelect, delete, exists, func, select, tuple_, union
from sqlalchemy.orm import Session

from spark_jobs.ledger.database import Sessions
from spark_jobs.ledger.publications import LIVE, built_by, shown_versions
from spark_jobs.ledger.schema import (
    Alarm,
    Audit,
    Build,
    Epoch,
    HotKey,
    Model,
    ModelPromotion,
    Publication,
    PublicationView,
    Replay,
    Request,
    Run,
    Verification,
    WaitingRun,
)


class Forgetting(Sessions):
    def forget_messages(self, before: datetime) -> None:
        """Remove requests answered, alarms cleared, epochs begun, and runs that began to wait before that time.

        Never the last epoch.
        """
        with self.write() as session:
            session.execute(delete(Request).where(Request.answered_at < before))
            session.execute(delete(Alarm).where(Alarm.cleared_at < before))
            session.execute(delete(WaitingRun).where(WaitingRun.since < before))
            last = select(func.max(Epoch.id)).scalar_subquery()
            session.execute(delete(Epoch).where(Epoch.started_at < before, Epoch.id < last))

    def forget_builds(self, before: datetime) -> None:
        """Remove the builds that ended before that time, and hot keys, of versions that no publication can show."""
        shown = shown_versions()
        with self.write() as session:
            is_shown = tuple_(Build.view_id, Build.batch_version).in_(shown)
            session.execute(delete(Build).where(Build.finished_at < before, ~is_shown))
            is_built = exists().where(Build.view_id == HotKey.view_id, Build.batch_version == HotKey.batch_version)
            is_shown = tuple_(HotKey.view_id, HotKey.batch_version).in_(shown)
            session.execute(delete(HotKey).where(~is_shown, ~is_built))

    def forget_history(self, before: datetime) -> None:
        """Remove the decisions that are older than that time, up to the first one that something refers to.

        Publications that expired, runs with their verdicts, replays without one, versions of models, and looks at the
        promises.
        """
        with self.write() as session:
            _forget_publications(session, before)
            _forget_models(session, before)
            _forget_runs(session, before)
            newest = select(func.max(Verification.id)).scalar_subquery()
            session.execute(delete(Verification).where(Verification.begun_at < before, Verification.id < newest))
            is_run = Replay.run_id.in_(select(Run.run_id))
            session.execute(delete(Replay).where(Replay.asked_at < before, ~is_run))


def _forget_publications(session: Session, before: datetime) -> None:
    live = session.scalars(select(Publication).where(Publication.state.in_(LIVE))).all()
    younger = session.scalar(select(func.min(Publication.id)).where(Publication.done_at >= before))
    needed = [built_by(session, publication).id for publication in live]
    first = min(needed if younger is None else [*needed, younger], default=0)
    session.execute(delete(PublicationView).where(PublicationView.publication_id < first))
    session.execute(delete(Publication).where(Publication.id < first))


def _forget_models(session: Session, before: datetime) -> None:
    """Never the decision in force, the version that it names, nor the newest version: the next goes on from there."""
    sent = select(ModelPromotion.model, func.max(ModelPromotion.decision)).where(ModelPromotion.sent_at.is_not(None))
    for model, decision in session.execute(sent.group_by(ModelPromotion.model)).all():
        old = (ModelPromotion.model == model, ModelPromotion.decision < decision, ModelPromotion.decided_at < before)
        session.execute(delete(ModelPromotion).where(*old))
    newest = select(Model.model, func.max(Model.version)).group_by(Model.model)
    of_model = tuple_(Model.model, Model.version)
    is_needed = of_model.in_(newest) | of_model.in_(select(ModelPromotion.model, ModelPromotion.version))
    session.execute(delete(Model).where(Model.trained_at < before, ~is_needed))


def _forget_runs(session: Session, before: datetime) -> None:
    """Only before the first that a build, a publication or a model refers to: later runs say what changed since."""
    needed: CompoundSelect[tuple[str | None]] = union(
        select(Build.run_id), select(Publication.run_id).where(Publication.run_id.is_not(None)), select(Model.run_id)
    )
    first = session.scalar(select(func.min(Run.started_at)).where(Run.run_id.in_(needed)))
    if first is not None:
        old = Run.started_at < min(first, before)
        session.execute(delete(Audit).where(Audit.run_id.in_(select(Run.run_id).where(old))))
        session.execute(delete(Run).where(old))
