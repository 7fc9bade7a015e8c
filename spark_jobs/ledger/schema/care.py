"""What was found and removed: alarms, verifications, erasures."""

from datetime import datetime
from typing import Any

from sqlalchemy import Text
from sqlalchemy.orm import Mapped, mapped_column

from spark_jobs.ledger.schema.base import Base, now


class Alarm(Base):
    """Something that people have to look at, from `raised_at` to `cleared_at`. `runbook`: page and section of docs/.

    raise_told_at, clearing_told_at: when Airflow's notifiers had sent the news.
    """

    __tablename__ = "alarms"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    name: Mapped[str]
    message: Mapped[str] = mapped_column(Text)
    runbook: Mapped[str]
    raised_at: Mapped[datetime] = mapped_column(default=now)
    cleared_at: Mapped[datetime | None] = mapped_column(index=True)
    acknowledged_at: Mapped[datetime | None]
    acknowledged_by: Mapped[str | None]
    raise_told_at: Mapped[datetime | None]
    clearing_told_at: Mapped[datetime | None]


class Verification(Base):
    """A look at the promises. `findings`: by their law, as they are made; `finished_at`: None until all are."""

    __tablename__ = "verifications"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    scope: Mapped[str]
    seed: Mapped[int]
    begun_at: Mapped[datetime] = mapped_column(default=now)
    finished_at: Mapped[datetime | None]
    exit_code: Mapped[int | None]
    findings: Mapped[dict[str, Any]] = mapped_column(default=dict)


class Erasure(Base):
    """Records about somebody that are to be erased. The subject is not kept: `kind` says what it was.

    requests: of the revisions; lsn: their last one, once they have landed; first_lsn: of the oldest record.
    outcome: what was ended and removed by it.
    """

    __tablename__ = "erasures"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    kind: Mapped[str]
    reason: Mapped[str] = mapped_column(Text)
    asked_by: Mapped[str]
    asked_at: Mapped[datetime] = mapped_column(default=now)
    records: Mapped[int]
    first_lsn: Mapped[int]
    requests: Mapped[list[int]]
    lsn: Mapped[int | None]
    finished_at: Mapped[datetime | None] = mapped_column(index=True)
    outcome: Mapped[dict[str, Any]] = mapped_column(default=dict)
