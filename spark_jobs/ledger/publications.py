"""Publications, their sources, and the text of serving views.

intent -> (views altered one by one) -> done -> expired. The publication in force is the done one with the highest id;
a rollback is a new publication with the sources of an older one, so ids only grow (I16).
"""

from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime

from sqlalchemy import Select, delete, func, select
from sqlalchemy.orm import Session

from spark_jobs.ledger.database import LedgerError, Sessions
from spark_jobs.ledger.replays import refuse_cancelled
from spark_jobs.ledger.schema import (
    Build,
    HotKey,
    Pin,
    Promotion,
    Publication,
    PublicationView,
    Replay,
    Run,
    ServingView,
)
from spark_jobs.ledger.source import Source

INTENT = select(Publication).where(Publication.state == "intent")
LIVE = ("intent", "done")
"""States of publications that somebody may read, or go back to."""


class Publications(Sessions):
    def begin_publication(
        self,
        kind: str,
        sources: Mapping[str, Source],
        *,
        cut: int,
        run_id: str | None = None,
        restores: int | None = None,
        promoted: Mapping[str, int] | None = None,
    ) -> Publication:
        """Write the intent, with the versions that names are promoted to by it.

        Refused while another intent is unfinished: roll that forward first; and for a replay that is cancelled by now.
        """
        with self.write() as session:
            if run_id is not None and (replay := session.get(Replay, run_id)) is not None:
                refuse_cancelled(replay)
            if (open_intent := session.scalars(INTENT).first()) is not None:
                raise LedgerError(f"publication {open_intent.id} is unfinished; any `tidemark batch` step finishes it")
            if restores is not None and session.get_one(Publication, restores).state == "expired":
                raise LedgerError(f"publication {restores} has expired: its tables may be gone")
            last = session.scalar(select(func.max(Publication.id)))
            number = 0 if last is None else last + 1
            publication = Publication(id=number, kind=kind, run_id=run_id, restores=restores, cut=cut)
            session.add(publication)
            session.flush()
            for view_id, source in sources.items():
                session.add(PublicationView(publication_id=number, view_id=view_id, **source.columns()))
            session.add_all(Promotion(name=name, version=version) for name, version in (promoted or {}).items())
        return publication

    def finish_publication(self, publication_id: int) -> None:
        with self.write() as session:
            publication = session.get_one(Publication, publication_id)
            publication.state = "done"
            publication.done_at = publication.done_at or datetime.now(UTC)

    def expire_publications(self, before: datetime) -> list[int]:
        """Expire publications that were done before that time; never the one in force, a pinned one, or an intent."""
        with self.write() as session:
            current = session.scalars(in_force().limit(1)).first()
            spared = {*session.scalars(select(Pin.publication_id)), *([current.id] if current else [])}
            old = session.scalars(select(Publication).where(Publication.state == "done", Publication.done_at < before))
            expired = [publication for publication in old if publication.id not in spared]
            for publication in expired:
                publication.state, publication.expired_at = "expired", datetime.now(UTC)
            return [publication.id for publication in expired]

    def unfinished_publication(self) -> Publication | None:
        return self.first(INTENT)

    def current_publication(self) -> Publication | None:
        """The publication in force, or None before publication 0 is done."""
        return self.first(in_force())

    def shown_before(self, publication: Publication) -> list[Publication]:
        """What readers saw before what this publication shows, the newest first.

        A rollback stands for what it restored, so what it took back is not among them.
        """
        earlier = list[Publication]()
        with self.read() as session:
            shown = built_by(session, publication)
            while (before := session.get(Publication, shown.id - 1)) is not None:
                restored = None if before.restores is None else session.get(Publication, before.restores)
                earlier.append(restored or before)
                shown = built_by(session, earlier[-1])
        return earlier

    def replaced_at(self, publication_id: int) -> datetime | None:
        """When the next publication was begun; None while there is none."""
        return self.first(select(Publication.intended_at).where(Publication.id == publication_id + 1))

    def extends(self, publication: Publication, base: int) -> bool:
        """Whether it is the base, or shows the same with views added that nobody had built."""
        while publication.id != base and publication.kind == "initial" and publication.id > 0:
            before = self.get(Publication, publication.id - 1)
            assert before is not None, "ids of publications have no gaps"
            publication = before
        return publication.id == base

    def publication_at(self, at: datetime) -> Publication | None:
        """The publication in force at `at`."""
        return self.first(in_force().where(Publication.done_at <= at))

    def readable_publication(self, number: int) -> Publication:
        """A publication that can still be read. LedgerError where there is none."""
        found = self.get(Publication, number)
        if found is None or found.state != "done":
            state = f"publication {number} {'has expired' if found else 'is not there'}"
            raise LedgerError(f"{state}; `tidemark batch status` lists those that are")
        return found

    def publication_of(self, run_id: str) -> Publication | None:
        return self.first(select(Publication).where(Publication.run_id == run_id))

    def publications(self, *, newest: int | None = None) -> list[Publication]:
        return self.all(select(Publication).order_by(Publication.id.desc()).limit(newest))

    def publications_of_each_kind(self) -> dict[str, int]:
        """Kind -> how many were done."""
        done = select(Publication.kind, func.count()).where(Publication.state != "intent").group_by(Publication.kind)
        with self.read() as session:
            return {row[0]: row[1] for row in session.execute(done)}

    def live_publications(self) -> list[Publication]:
        """All that may be read, rolled back to, pinned or finished: everything not expired; the newest first."""
        return self.all(select(Publication).where(Publication.state.in_(LIVE)).order_by(Publication.id.desc()))

    def sources(self, publication: Publication | int | None) -> dict[str, Source]:
        """View id -> source of one publication; none where nothing is published yet."""
        key = publication.id if isinstance(publication, Publication) else publication
        return self._sources(select(PublicationView).where(PublicationView.publication_id == key))

    def current_sources(self) -> dict[str, Source]:
        """View id -> source of the publication in force; none before publication 0 is done."""
        return self.sources(self.current_publication())

    def built_sources(self, run_id: str) -> dict[str, Source]:
        """View id -> source of what a run has built, published or not."""
        return self._sources(select(Build).where(Build.run_id == run_id))

    def _sources(self, query: Select[PublicationView] | Select[Build]) -> dict[str, Source]:
        hot: dict[tuple[str, int | None], list[str]] = defaultdict(list)
        with self.read() as session:
            rows = session.scalars(query).all()
            ids, versions = {row.view_id for row in rows}, {row.batch_version for row in rows}
            shown = HotKey.view_id.in_(ids) & HotKey.batch_version.in_(versions)
            for key in session.scalars(select(HotKey).where(shown).order_by(HotKey.digest)):
                hot[key.view_id, key.batch_version].append(key.digest)
            return {
                row.view_id: Source(
                    batch_version=row.batch_version,
                    results_version=row.results_version,
                    cut=row.cut,
                    horizon=row.horizon,
                    hot_keys=tuple(hot[row.view_id, row.batch_version]),
                )
                for row in rows
            }

    def forget_view(self, view_id: str) -> None:
        """The view's tables are removed: no publication that can be read shows it, and no run can publish it.

        The versions of its tables would begin again if it came back, and mean something else.
        """
        live = select(Publication.id).where(Publication.state.in_(LIVE))
        unfinished = select(Run.run_id).where(Run.state.in_(("active", "failed")))
        with self.write() as session:
            shows = PublicationView.view_id == view_id
            session.execute(delete(PublicationView).where(shows, PublicationView.publication_id.in_(live)))
            session.execute(delete(Build).where(Build.view_id == view_id, Build.run_id.in_(unfinished)))
            session.execute(delete(HotKey).where(HotKey.view_id == view_id))

    def lowest_live_cut(self) -> int:
        """The lsn up to which nobody reads speed partials; 0 when nothing was published."""
        cuts = select(func.min(PublicationView.cut)).join(Publication).where(Publication.state.in_(LIVE))
        return self.first(cuts) or 0

    def serving_sql(self) -> dict[str, str]:
        """Serving view -> the text it was last given."""
        return {row.name: row.sql for row in self.all(select(ServingView))}

    def record_serving_sql(self, name: str, sql: str) -> None:
        with self.write() as session:
            session.merge(ServingView(name=name, sql=sql, at=datetime.now(UTC)))

    def forget_serving_sql(self, name: str) -> None:
        """The serving view is no more, and nobody misses it."""
        with self.write() as session:
            session.execute(delete(ServingView).where(ServingView.name == name))


def in_force() -> Select[Publication]:
    """Done, the newest first. An expired publication was done once, so it still tells what was in force."""
    return select(Publication).where(Publication.state != "intent").order_by(Publication.id.desc())


def shown_versions() -> Select[str, int | None]:
    """(view id, batch version) of what somebody may read, or go back to."""
    shown = select(PublicationView.view_id, PublicationView.batch_version).join(Publication)
    return shown.where(Publication.state.in_(LIVE), PublicationView.batch_version.is_not(None)).distinct()


def built_by(session: Session, publication: Publication) -> Publication:
    """The publication whose run built what this one shows: itself, or the one that it restores or extends.

    The first of all where no run did.
    """
    while publication.run_id is None:
        before = publication.id - 1 if publication.restores is None else publication.restores
        if (shown := session.get(Publication, before)) is None:
            break
        publication = shown
    return publication
