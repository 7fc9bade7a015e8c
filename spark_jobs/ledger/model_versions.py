"""Models: the versions that runs have trained, and the decisions to score with one of them.

trained -> (accepted) intent -> its record in Kafka -> sent. The version in force is that of the last decision sent.
"""

import uuid
from datetime import UTC, datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.schema import Model, ModelPromotion


class ModelVersions(Sessions):
    def record_model(self, trained: Model) -> Model:
        """Record a run's version under the next number, and with an accepted one the intent to promote it.

        Both are written, or neither. A run trains a model once: a version that it recorded before is returned as it is.
        """
        with self.write() as session:
            if (before := session.scalars(_of_run(trained.model, trained.run_id)).first()) is not None:
                return before
            last = session.scalar(select(func.max(Model.version)).where(Model.model == trained.model))
            trained.version = (last or 0) + 1
            session.add(trained)
            if trained.is_accepted:
                _intend(session, trained.model, trained.version, f"run {trained.run_id}: {trained.reason}")
        return trained

    def model_of_run(self, model: str, run_id: str) -> Model | None:
        return self.first(_of_run(model, run_id))

    def models(self, model: str | None = None) -> list[Model]:
        """All versions, or those of one model; the newest first."""
        query = select(Model).order_by(Model.model, Model.version.desc())
        return self.all(query if model is None else query.where(Model.model == model))

    def model(self, model: str, version: int) -> Model:
        """Raises LedgerError where there is none."""
        known = self.get(Model, (model, version))
        if known is None:
            raise LedgerError(f"there is no version {version} of model {model}; `tidemark model list` shows them")
        return known

    def model_in_force(self, model: str) -> Model | None:
        """The version of the last decision whose record is in Kafka."""
        sent = [decision.version for decision in self.model_promotions(model) if decision.sent_at is not None]
        return self.model(model, sent[-1]) if sent else None

    def model_promotions(self, model: str) -> list[ModelPromotion]:
        """Every decision, in order; only the last one may be unfinished."""
        return self.all(_decisions(model))

    def intend_model_promotion(self, model: str, version: int, reason: str) -> ModelPromotion:
        """Write a new decision; refused while another one is unfinished, or if there is no such version."""
        self.model(model, version)
        with self.write() as session:
            return _intend(session, model, version, reason)

    def finish_model_promotion(self, model: str, decision: int) -> None:
        """Write down that the record is in Kafka; if two send the same decision at once, the first one's time stays."""
        with self.write() as session:
            intent = session.get_one(ModelPromotion, (model, decision))
            intent.sent_at = intent.sent_at or datetime.now(UTC)


def _of_run(model: str, run_id: str) -> Select[Model]:
    return select(Model).where(Model.model == model, Model.run_id == run_id)


def _decisions(model: str) -> Select[ModelPromotion]:
    return select(ModelPromotion).where(ModelPromotion.model == model).order_by(ModelPromotion.decision)


def _intend(session: Session, model: str, version: int, reason: str) -> ModelPromotion:
    before = session.scalars(_decisions(model)).all()
    if before and before[-1].sent_at is None:
        raise LedgerError(
            f"decision {before[-1].decision} about {model} is unfinished; try again, it is finished first"
        )
    decision, now = before[-1].decision + 1 if before else 1, datetime.now(UTC)
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)  # what an event can say
    # A way back is a new decision with a new id. Its time is part of the id, as another ledger counts anew.
    event_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"tidemark:model/{model}/{decision}/{now.isoformat()}"))
    intent = ModelPromotion(
        model=model, decision=decision, version=version, event_id=event_id, reason=reason, decided_at=now
    )
    session.add(intent)
    return intent
