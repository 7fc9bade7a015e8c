"""Batch runs: one at a time. A run has one cut for all its retries, the builds that it made, and the gate's verdict."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, func, select, update
from sqlalchemy.orm import Session

from spark_jobs.ledger import turns
from spark_jobs.ledger.database import LedgerError
from spark_jobs.ledger.leases import Held, Leases, kept_alive
from spark_jobs.ledger.publications import built_by, in_force
from spark_jobs.ledger.schema import Audit, Build, HotKey, Run, StoppedPlan, WaitingRun
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.turns import RunActive

BASE = "base"
"""In a run's summary: the id of the publication that its builds go on from; missing before there was one."""
AGREEMENT, UNEXPLAINED = "agreement", "unexplained"
"""In the summary of an audited run: per view the rows that differ from the speed layer's, by cause, and one cause."""


BATCH_TABLES = "facts and batch tables"
WRITER_PATIENCE_SECONDS = 90.0
"""Longer than the lease of a writer that was killed."""


class Runs(Leases):
    def begin_run(
        self, planned: Run, cut_chosen_at: datetime | None = None, others: Mapping[str, str] | None = None
    ) -> Run:
        """Write the plan, with the days of runs that wait, or return the plan of this run's first try.

        others: runs that cannot ask yet, id -> day; they have been waiting since before the cut was chosen.
        RunActive while another run is at work: this one waits then, if any other can do its days as well. Merged once
        one has done them.
        """
        chosen_at = cut_chosen_at or datetime.now(UTC)
        try:
            return self._begun(planned, chosen_at, others or {})
        except RunActive:
            with self.write() as session:
                turns.wait(session, planned, datetime.now(UTC), others or {})
            raise

    def _begun(self, planned: Run, cut_chosen_at: datetime, others: Mapping[str, str]) -> Run:
        now, run_id = datetime.now(UTC), planned.run_id
        with self.write() as session:
            run = turns.turn(session, run_id, now)
            session.execute(delete(StoppedPlan))
            for other in session.scalars(select(Run).where(Run.state == "failed", Run.run_id != run_id)):
                turns.supersede(session, other, f"{other.error}; then run {run_id} began")
            if run is not None:
                return _revived(run, now)
            if others:
                turns.wait(session, planned, cut_chosen_at, others)
                session.flush()
            turns.take_over(session, planned, cut_chosen_at)
            planned.started_at = planned.progressed_at = now
            session.add(planned)
        return planned

    @contextmanager
    def maintenance(self, name: str) -> Iterator[None]:
        """Keep runs away meanwhile, so that nothing else writes the batch tables. RunActive while a run is at work."""
        now = datetime.now(UTC)
        run_id = f"{name}-{now:%Y%m%dT%H%M%S.%f}"
        with self.write() as session:
            turns.turn(session, run_id, now)
            session.add(Run(run_id=run_id, mode=name, started_at=now, progressed_at=now))
        try:
            yield
        finally:
            with self.write() as session:
                session.delete(session.get_one(Run, run_id))

    @contextmanager
    def writing(self, run_id: str) -> Iterator[Held]:
        """Alone with the facts and the batch tables; the run lives as long as this process does.

        Busy where another process holds them, be it for the same run.
        """
        with (
            self.holding(BATCH_TABLES, WRITER_PATIENCE_SECONDS) as held,
            kept_alive(held, lambda: self._lives(run_id)),
        ):
            yield held

    def _lives(self, run_id: str) -> None:
        with self.write() as session:
            alive = update(Run).where(Run.run_id == run_id, Run.state == "active")
            session.execute(alive.values(progressed_at=datetime.now(UTC)))

    def active_run(self, run_id: str) -> Run:
        """The run, for its next step, and active from now on. RunActive while another run is at work."""
        now = datetime.now(UTC)
        with self.write() as session:
            run = turns.turn(session, run_id, now)
            if run is None:
                raise LedgerError(f"no run is called {run_id}: `tidemark batch plan --run-id {run_id}` comes first")
            return _revived(run, now)

    def progress(self, run_id: str, step: str | None = None, **summary: Any) -> None:
        """Write down that the run lives: `step` ended, or one is under way. Refused once the run is superseded."""
        with self.write() as session:
            run = session.get_one(Run, run_id)
            if run.state == "superseded":
                raise LedgerError(f"run {run_id} is superseded ({run.error}); nothing more of it counts")
            run.step, run.progressed_at = step or run.step, datetime.now(UTC)
            run.state, run.error = ("finished" if run.step == "publish" else "active"), None
            run.summary = {**run.summary, **summary}

    def fail_run(self, run_id: str, error: str) -> None:
        with self.write() as session:
            run = session.get(Run, run_id)
            if run is not None and run.state == "active":
                run.state, run.error, run.progressed_at = "failed", error, datetime.now(UTC)

    def plan_stopped(self, run_id: str, error: str) -> None:
        with self.write() as session:
            session.merge(StoppedPlan(run_id=run_id, error=error, at=datetime.now(UTC)))

    def stopped_plans(self) -> list[StoppedPlan]:
        """Plans that failed since a run began last, the newest first."""
        return self.all(select(StoppedPlan).order_by(StoppedPlan.at.desc()))

    def run(self, run_id: str) -> Run | None:
        return self.get(Run, run_id)

    def runs(self, *, newest: int = 20) -> list[Run]:
        return self.all(select(Run).order_by(Run.started_at.desc()).limit(newest))

    def waiting_runs(self) -> list[WaitingRun]:
        """Those whose days nobody has built yet, the longest waiting first."""
        done = select(Run.run_id).where(Run.state == "finished")
        is_done = WaitingRun.taken_by.is_not(None) & WaitingRun.taken_by.in_(done)
        return self.all(select(WaitingRun).where(~is_done).order_by(WaitingRun.since))

    def runs_since_base(self, run_id: str) -> list[Run]:
        """This run, and all that began after the run whose builds the publication in force shows."""
        with self.read() as session:
            base = _base_run(session)
            return _since(session, run_id, None if base is None else base.started_at)

    def runs_since_built(self, run_id: str, sources: Mapping[str, Source]) -> dict[str, list[Run]]:
        """View id -> this run, and all that began after the one that built its source; all, where none is known.

        A view that was held back shows an older build than the publication in force.
        """
        with self.read() as session:
            built: dict[str, datetime] = {}
            versions = {source.batch_version for source in sources.values()}
            of_sources = Build.view_id.in_(sources) & Build.batch_version.in_(versions)
            builds = select(Build, Run.started_at).join(Run).where(of_sources, Build.run_id != run_id)
            for build, began in session.execute(builds).all():
                if _is_of(build, sources.get(build.view_id)):
                    built[build.view_id] = max(began, built.get(build.view_id, began))
            is_known = built.keys() >= sources.keys()
            runs = _since(session, run_id, min(built.values(), default=None) if is_known else None)
        return {
            view_id: [
                run for run in runs if run.run_id == run_id or view_id not in built or run.started_at > built[view_id]
            ]
            for view_id in sources
        }

    def decoded_cut(self) -> int:
        """The lsn up to which facts are complete: the highest cut of a run whose decode ended."""
        return self.first(select(func.max(Run.cut)).where(Run.step.in_(("decode", "build", "audit", "publish")))) or 0

    def record_build(self, build: Build, hot_keys: Iterable[HotKey] | None = None) -> None:
        """Record what the run built for a view; a retry replaces the row.

        hot_keys: the keys of the version that the run has made; None where it goes on with an older one.
        """
        with self.write() as session:
            session.merge(build)
            if hot_keys is not None:
                session.execute(delete(HotKey).where(*_hot_keys_in(build.view_id, build.batch_version)))
                session.add_all(hot_keys)

    def builds(self, run_id: str) -> dict[str, Build]:
        return {row.view_id: row for row in self.all(select(Build).where(Build.run_id == run_id))}

    def least_rebuilt(self, view_ids: Iterable[str]) -> list[str]:
        """The views, those first whose last build from all facts is longest ago."""
        with self.read() as session:
            full = (
                select(Build.view_id, func.max(Build.finished_at)).where(Build.mode == "full").group_by(Build.view_id)
            )
            last = {row.view_id: row[1] for row in session.execute(full)}
        return sorted(view_ids, key=lambda view_id: (last.get(view_id, datetime.min.replace(tzinfo=UTC)), view_id))

    def hot_keys(self, view_id: str, batch_version: int) -> list[HotKey]:
        """The hot keys of a version, those with the most rows first."""
        of_version = select(HotKey).where(*_hot_keys_in(view_id, batch_version))
        return self.all(of_version.order_by(HotKey.row_count.desc(), HotKey.key))

    def record_audit(self, run_id: str, passed: bool, warnings: int = 0, docs_url: str | None = None) -> None:
        """The gate's verdict on a run; publish asks for it. A run that did not pass has failed."""
        with self.write() as session:
            run = session.get_one(Run, run_id)
            if not passed and run.state != "superseded":
                run.state, run.error = "failed", "the audit did not pass"
            session.merge(
                Audit(run_id=run_id, passed=passed, warnings=warnings, docs_url=docs_url, at=datetime.now(UTC))
            )

    def audit(self, run_id: str) -> Audit | None:
        return self.get(Audit, run_id)

    def last_audit(self) -> Audit | None:
        """The newest verdict, of whatever run."""
        return self.first(select(Audit).order_by(Audit.at.desc()))


def _hot_keys_in(view_id: str, batch_version: int) -> tuple[ColumnElement[bool], ...]:
    return HotKey.view_id == view_id, HotKey.batch_version == batch_version


def _is_of(build: Build, source: Source | None) -> bool:
    """Whether the source of a publication is this build."""
    columns = {} if source is None else source.columns()
    return bool(columns) and all(getattr(build, name) == value for name, value in columns.items())


def _revived(run: Run, now: datetime) -> Run:
    if run.state == "failed":
        run.state, run.error = "active", None
    run.progressed_at = now
    return run


def _since(session: Session, run_id: str, moment: datetime | None) -> list[Run]:
    """The run, and all that began after that moment, or ever; in their order."""
    later = select(Run) if moment is None else select(Run).where(Run.started_at > moment)
    runs = {run.run_id: run for run in session.scalars(later)}
    if (own := session.get(Run, run_id)) is not None:
        runs[run_id] = own
    return sorted(runs.values(), key=lambda run: run.started_at)


def _base_run(session: Session) -> Run | None:
    """The run that built what the publication in force shows."""
    shown = session.scalars(in_force().limit(1)).first()
    base = None if shown is None else built_by(session, shown)
    return None if base is None or base.run_id is None else session.get(Run, base.run_id)
