"""Replays: who wants which part of history done again, what it would change for readers, and who agreed.

planned -> (its run builds) -> compared -> approved -> published by its run; or cancelled, at any point before.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.schema import Build, Publication, Replay, Run

NOBODY = "nobody: nothing differs"
"""Who approves what changes no answer."""


class Replays(Sessions):
    def begin_replay(self, planned: Replay) -> Replay:
        """Write down what is wanted, or return it where this id has asked for the same before."""
        with self.write() as session:
            known = session.get(Replay, planned.run_id)
            if known is None and session.get(Run, planned.run_id) is not None:
                raise LedgerError(f"a run is called {planned.run_id}; choose another name for the replay")
            if known is not None and known.wanted != planned.wanted:
                raise LedgerError(f"replay {planned.run_id} wants something else; choose another name")
            if known is None:
                session.add(planned)
        return known or planned

    def replay(self, run_id: str) -> Replay | None:
        return self.get(Replay, run_id)

    def replays(self, *, newest: int = 20) -> list[Replay]:
        """The newest first."""
        return self.all(select(Replay).order_by(Replay.asked_at.desc()).limit(newest))

    def asked_replay(self, run_id: str) -> Replay:
        """The replay. LedgerError where nobody asked for it, or somebody has cancelled it."""
        replay = self.replay(run_id)
        if replay is None:
            raise LedgerError(f"no replay is called {run_id}; `tidemark replay list` shows them")
        refuse_cancelled(replay)
        return replay

    def record_differences(self, run_id: str, differences: Sequence[Mapping[str, Any]]) -> None:
        """What its builds would change for readers. Nobody has agreed to that yet, but that nothing changes."""
        now = datetime.now(UTC)
        with self.write() as session:
            replay = session.get_one(Replay, run_id)
            replay.differences, replay.compared_at = [*map(dict, differences)], now
            replay.approved_by, replay.approved_at = (None, None) if differences else (NOBODY, now)

    def approve_replay(self, run_id: str, by: str) -> Replay:
        """Somebody has seen the differences and agrees; the first one's name stays."""
        self.asked_replay(run_id)
        with self.write() as session:
            replay = session.get_one(Replay, run_id)
            if replay.differences is None:
                raise LedgerError(f"replay {run_id} has nothing to agree to yet: `tidemark replay run {run_id}` first")
            replay.approved_by, replay.approved_at = replay.approved_by or by, replay.approved_at or datetime.now(UTC)
        return replay

    def cancel_replay(self, run_id: str, by: str) -> Replay:
        """It is not wanted any more, and its run ends at its next sign of life.

        LedgerError once it is published: that is taken back by a rollback.
        """
        self.asked_replay(run_id)
        with self.write() as session:
            replay, run = session.get_one(Replay, run_id), session.get(Run, run_id)
            begun = session.scalars(select(Publication).where(Publication.run_id == run_id)).first()
            if begun is not None:
                raise LedgerError(f"replay {run_id} is publication {begun.id}: `tidemark batch rollback` takes it back")
            replay.cancelled_by, replay.cancelled_at = by, datetime.now(UTC)
            if run is not None and run.state in ("active", "failed"):
                run.state, run.error = "superseded", f"cancelled by {by}"
        return replay

    def refuse_unapproved(self, run_id: str) -> None:
        """LedgerError where the run is a replay, and nobody has agreed to what its builds change."""
        if self.replay(run_id) is None:
            return
        replay = self.asked_replay(run_id)
        if replay.approved_at is None:
            raise LedgerError(f"replay {run_id} waits for approval: `tidemark replay show {run_id}`, then `approve`")
        with self.read() as session:
            built = session.scalars(select(Build.finished_at).where(Build.run_id == run_id)).all()
        if replay.compared_at is not None and max(built, default=replay.compared_at) > replay.compared_at:
            raise LedgerError(f"replay {run_id} was built again after it was compared: `tidemark replay run {run_id}`")

    def last_builds(self) -> dict[str, Build]:
        """View id -> its newest build for which something was to do."""
        built = select(Build).where(Build.mode != "same").order_by(Build.finished_at)
        return {build.view_id: build for build in self.all(built)}


def refuse_cancelled(replay: Replay) -> None:
    """LedgerError where somebody has cancelled it."""
    if replay.cancelled_at is not None:
        raise LedgerError(f"replay {replay.run_id} was cancelled by {replay.cancelled_by}: plan another one")
