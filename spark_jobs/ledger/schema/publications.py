"""What readers are shown: publications, their views' sources and texts, pins."""

from datetime import datetime

from sqlalchemy import ForeignKey, Text
from sqlalchemy.orm import Mapped, mapped_column

from spark_jobs.ledger.schema.base import Base, now


class Publication(Base):
    """The set of sources that readers see. `state`: intent, done or expired; `restores`: what a rollback restored."""

    __tablename__ = "publications"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str]
    run_id: Mapped[str | None] = mapped_column(ForeignKey("runs.run_id"), unique=True)
    restores: Mapped[int | None]
    cut: Mapped[int]
    state: Mapped[str] = mapped_column(default="intent", index=True)
    intended_at: Mapped[datetime] = mapped_column(default=now)
    done_at: Mapped[datetime | None]
    expired_at: Mapped[datetime | None]


class PublicationView(Base):
    """One view's source within a publication."""

    __tablename__ = "publication_views"
    publication_id: Mapped[int] = mapped_column(ForeignKey("publications.id"), primary_key=True)
    view_id: Mapped[str] = mapped_column(primary_key=True)
    batch_version: Mapped[int | None]
    results_version: Mapped[int | None]
    cut: Mapped[int]
    horizon: Mapped[datetime | None]


class ServingView(Base):
    """The text that a serving view was last given, so that only changed ones are altered."""

    __tablename__ = "serving_views"
    name: Mapped[str] = mapped_column(primary_key=True)
    sql: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime]


class Pin(Base):
    """A named, read-only schema over one publication and one upper lsn. `state`: intent, done or dropping."""

    __tablename__ = "pins"
    name: Mapped[str] = mapped_column(primary_key=True)
    publication_id: Mapped[int] = mapped_column(ForeignKey("publications.id"))
    head: Mapped[int]
    now: Mapped[datetime]
    created_at: Mapped[datetime] = mapped_column(default=now)
    keep_until: Mapped[datetime | None]  # None: until it is dropped
    state: Mapped[str] = mapped_column(default="intent")
