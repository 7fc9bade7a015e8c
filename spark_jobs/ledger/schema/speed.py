"""What the speed application says and is asked, and who holds what."""

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Mapped, mapped_column

from spark_jobs.ledger.schema.base import Base, now


class Request(Base):
    """What another process asks the speed application for. `state`: pending, taken, done or failed."""

    __tablename__ = "requests"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    kind: Mapped[str]
    arguments: Mapped[dict[str, Any]]
    state: Mapped[str] = mapped_column(default="pending", index=True)
    answer: Mapped[dict[str, Any]] = mapped_column(default=dict)
    asked_at: Mapped[datetime] = mapped_column(default=now)
    answered_at: Mapped[datetime | None]


class Epoch(Base):
    """One life of the speed application's checkpoint, and what it began after; `storage.fencing` numbers them."""

    __tablename__ = "epochs"
    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=True)
    after_lsn: Mapped[int]
    reason: Mapped[str]
    started_at: Mapped[datetime] = mapped_column(default=now)


class Lease(Base):
    """What one process alone may do, until then. `number` grows with every holder: it fences what they write."""

    __tablename__ = "leases"
    name: Mapped[str] = mapped_column(primary_key=True)
    holder: Mapped[str]
    number: Mapped[int] = mapped_column(default=1)
    until: Mapped[datetime]


class AlertsSent(Base):
    """Up to which lsn all alerts of a view (its column) are in Kafka."""

    __tablename__ = "alerts_sent"
    view: Mapped[str] = mapped_column(primary_key=True)
    lsn: Mapped[int]


class Heartbeat(Base):
    """The last sign of life of a component."""

    __tablename__ = "heartbeats"
    component: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    payload: Mapped[dict[str, Any]]
