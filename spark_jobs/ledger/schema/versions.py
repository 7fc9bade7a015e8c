"""Which versions of views and models there are, and which count."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from spark_jobs.ledger.schema.base import Base, now


class Promotion(Base):
    """A name is served from this version of its view, from then on."""

    __tablename__ = "promotions"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    name: Mapped[str]
    version: Mapped[int]
    promoted_at: Mapped[datetime] = mapped_column(default=now)


class ViewText(Base):
    """What a view said when it was first computed."""

    __tablename__ = "definitions"
    view_id: Mapped[str] = mapped_column(primary_key=True)
    text: Mapped[str] = mapped_column(Text)
    defined_at: Mapped[datetime] = mapped_column(default=now)


class Model(Base):
    """A version of a model that a run has trained; `is_accepted`, `reason`: what was decided about it then."""

    __tablename__ = "models"
    __table_args__ = (UniqueConstraint("model", "run_id"),)
    model: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"))
    cut: Mapped[int]
    trained_at: Mapped[datetime] = mapped_column(default=now)
    seconds: Mapped[float]
    weights: Mapped[dict[str, Any]]
    metrics: Mapped[dict[str, Any]]
    is_accepted: Mapped[bool]
    reason: Mapped[str] = mapped_column(Text)


class ModelPromotion(Base):
    """A decision to score with a version from then on. `sent_at`: Kafka has taken its record; None: an intent."""

    __tablename__ = "model_promotions"
    model: Mapped[str] = mapped_column(primary_key=True)
    decision: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    version: Mapped[int]
    event_id: Mapped[str]
    reason: Mapped[str] = mapped_column(Text)
    decided_at: Mapped[datetime]
    sent_at: Mapped[datetime | None]
