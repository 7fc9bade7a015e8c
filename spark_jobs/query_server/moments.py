"""What the views of a schema are made of: of `serving` now, of a pin for ever, of a moment that a question names.

ledger -> publication, sources, last lsn, now -> Moment. A pin's row in the ledger is enough: its names in Spark's
catalog are not looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.chained_view import Served
from spark_jobs.ledger.schema import Pin
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.registry.views import Views
from spark_jobs.serving.render import continues, ready, servable


@dataclass(frozen=True, eq=False)
class Moment:
    """views: by name, those that can be asked; stored: the versions that they are made of, each with its source.

    head: the last lsn that counts, None for the newest; now: of trailing windows, None for the clock.
    """

    publication: int
    sources: Mapping[str, Source]
    stored: tuple[View, ...]
    views: Mapping[str, Served]
    head: int | None = None
    now: datetime | None = None


class Moments:
    """Each schema's moment. What a pin is made of is found out once."""

    def __init__(self, views: Views, store: Store) -> None:
        self.views, self._store = views, store
        self._pinned = lru_cache(maxsize=100)(self._of)
        self._sources = lru_cache(maxsize=2)(store.sources)  # of a publication, by its number: it never changes

    def serving(self) -> Moment:
        """What is in force: the views that readers have got names for. Refusal before the first publication."""
        current = self._store.current_publication()
        if current is None:
            raise Refusal("unknown", "nothing is published yet")
        named = self._store.serving_sql()
        chosen = ready(self.views, self._sources(current.id), self._store.promoted())
        sources = {
            view.id: chosen[view.id]
            for view in self._stored(chosen)
            if view.name not in named or continues(named[view.name], view, chosen[view.id])
        }
        there = {view.name: view for view in servable(self.views, sources) if view.name in named}
        return Moment(current.id, sources, self._stored(sources), there)

    def pin(self, name: str) -> Moment:
        """Refusal where there is no such pin."""
        pin = self._store.pin(pins.checked(name))
        if pin is None:
            raise Refusal("unknown", str(pins.unknown(self._store, pins.checked(name))))
        return self._pinned(pin.name, pin.publication_id, pin.head, pin.now)

    def as_of(self, text: str) -> Moment:
        """A time in ISO 8601 with its zone, or the number of a publication. Refusal."""
        try:
            at = pins.come(self._time_of(text))
            publication = self._store.publication_at(at)
            if publication is None:
                raise Refusal("unknown", f"nothing was published by {at.isoformat()}")
            return self._of("", publication.id, pins.head_at(self._store, publication, at), at)
        except LedgerError as error:
            raise Refusal("unknown", str(error)) from error
        except OverflowError as error:
            raise Refusal("refused", f"as_of: {text!r} is no moment that there is") from error

    def _time_of(self, text: str) -> datetime:
        if text.isdecimal():
            done = self._store.readable_publication(int(text)).done_at
            assert done is not None, "a publication that can be read is done"
            return done
        try:
            at = datetime.fromisoformat(text)
        except ValueError as error:
            raise Refusal("refused", f"as_of: {text!r} is neither an ISO 8601 time nor a publication") from error
        if at.tzinfo is None:
            raise Refusal("refused", f"as_of: {text!r} lacks its zone: write {text}Z for UTC")
        return at.astimezone(UTC)

    def _of(self, name: str, publication: int, head: int, now: datetime) -> Moment:
        pin = Pin(name=name, publication_id=publication, head=head, now=now)
        sources = pins.sources_of(self.views, self._store, pin)
        there = {view.name: view for view in servable(self.views, sources)}
        return Moment(publication, sources, self._stored(sources), there, head, now)

    def _stored(self, sources: Mapping[str, Source]) -> tuple[View, ...]:
        return tuple(view for view in self.views if view.id in sources)
