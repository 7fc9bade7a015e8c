"""What runs did: plans, builds, verdicts, and replays that somebody asked for."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from spark_jobs.ledger.schema.base import Base, now


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


class StoppedPlan(Base):
    """A plan that failed, so that there is no run; kept until one begins."""

    __tablename__ = "stopped_plans"
    run_id: Mapped[str] = mapped_column(primary_key=True)
    error: Mapped[str] = mapped_column(Text)
    at: Mapped[datetime] = mapped_column(default=now)


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
