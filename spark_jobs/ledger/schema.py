"""The ledger's tables: every decision of the platform, in relational form.

Instants are UTC and time-zone aware; JSON columns hold plain dictionaries and lists. What is asked again and again has
an index, as decisions stay for years (see `forgetting`).
"""

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    Text,
    TypeDecorator,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

SCHEMA_VERSION = 1


class Instant(TypeDecorator[datetime]):
    """A UTC instant; SQLite keeps no time zone, so it is taken off and put back here."""

    impl = DateTime
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"an instant without a time zone: {value!r}")
        return value.astimezone(UTC).replace(tzinfo=None)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


def now() -> datetime:
    return datetime.now(UTC)


class Base(DeclarativeBase):
    type_annotation_map = {  # noqa: RUF012  (SQLAlchemy reads it as a class attribute)
        datetime: Instant,
        dict[str, Any]: JSON,
        list[str]: JSON,
        list[int]: JSON,
        list[dict[str, Any]]: JSON,
        int: BigInteger().with_variant(Integer, "sqlite"),
    }


class Meta(Base):
    """Facts about the ledger itself: `schema_version`."""

    __tablename__ = "meta"
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class Run(Base):
    """One logical batch run. `state`: active, failed, superseded or finished; `step`: the last step that ended."""

    __tablename__ = "runs"
    __table_args__ = (Index("ix_runs_step_cut", "step", "cut"),)
    run_id: Mapped[str] = mapped_column(primary_key=True)
    mode: Mapped[str] = mapped_column(default="changed")
    days: Mapped[list[str]] = mapped_column(default=list)
    previous_cut: Mapped[int] = mapped_column(default=0)
    cut: Mapped[int] = mapped_column(default=0)
    cut_at: Mapped[datetime | None]
    state: Mapped[str] = mapped_column(default="active", index=True)
    step: Mapped[str] = mapped_column(default="plan")
    started_at: Mapped[datetime] = mapped_column(index=True)
    progressed_at: Mapped[datetime]
    error: Mapped[str | None] = mapped_column(Text)
    summary: Mapped[dict[str, Any]] = mapped_column(default=dict)


class WaitingRun(Base):
    """A run that found another at work, and its days. `taken_by`: the run that does them, where one has begun since."""

    __tablename__ = "waiting_runs"
    run_id: Mapped[str] = mapped_column(primary_key=True)
    days: Mapped[list[str]]
    since: Mapped[datetime]
    taken_by: Mapped[str | None] = mapped_column(index=True)


class Build(Base):
    """What a run wrote for one view: the versions of its Delta tables (`results_version`: sequence views)."""

    __tablename__ = "builds"
    __table_args__ = (Index("ix_builds_version", "view_id", "batch_version"),)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    view_id: Mapped[str] = mapped_column(primary_key=True)
    mode: Mapped[str]
    cut: Mapped[int]
    horizon: Mapped[datetime | None]
    batch_version: Mapped[int]
    results_version: Mapped[int | None]
    row_count: Mapped[int]
    seconds: Mapped[float]
    finished_at: Mapped[datetime]


class HotKey(Base):
    """A key with too many rows in a build of a sequence view. `digest`: as by `sequences.digest`."""

    __tablename__ = "hot_keys"
    view_id: Mapped[str] = mapped_column(primary_key=True)
    batch_version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[str] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(Text)
    row_count: Mapped[int]


class Audit(Base):
    """The gate's verdict on a run's builds; the newest verdict of a run counts."""

    __tablename__ = "audits"
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.run_id"), primary_key=True)
    passed: Mapped[bool]
    warnings: Mapped[int]
    docs_url: Mapped[str | None]
    at: Mapped[datetime] = mapped_column(index=True)


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


class Heartbeat(Base):
    """The last sign of life of a component."""

    __tablename__ = "heartbeats"
    component: Mapped[str] = mapped_column(primary_key=True)
    at: Mapped[datetime]
    payload: Mapped[dict[str, Any]]


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


class Replay(Base):
    """A part of history that somebody wants done again by the run of that id.

    wanted, preview, differences: as `batch.replay` makes them; differences: None until its builds are compared with
    what is published. Nothing of the run is published before somebody has approved them.
    """

    __tablename__ = "replays"
    run_id: Mapped[str] = mapped_column(primary_key=True)
    wanted: Mapped[dict[str, Any]]
    reason: Mapped[str] = mapped_column(Text)
    asked_by: Mapped[str]
    asked_at: Mapped[datetime] = mapped_column(default=now)
    preview: Mapped[dict[str, Any]]
    differences: Mapped[list[dict[str, Any]] | None]
    compared_at: Mapped[datetime | None]
    approved_by: Mapped[str | None]
    approved_at: Mapped[datetime | None]
    cancelled_by: Mapped[str | None]
    cancelled_at: Mapped[datetime | None]


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


MIRRORED = tuple(sorted(Base.metadata.tables.keys() - {"meta", "leases"}))
"""What SQL readers see of the ledger, as tables of the schema `ops`."""
