"""Pins: a schema of read-only views that go on answering as the platform answered at one moment.

(publication in force at t, highest lsn whose partials were committed by t, t as `now`) -> schema `pin_<name>`. One of
what is published has the highest lsn that is built.
Everything but the name is a literal that the program made; the name is checked by a pattern.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from spark_jobs.ledger.schema import Pin, Publication
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.orchestration.interface import PIN
from spark_jobs.publication.fitness import holes
from spark_jobs.publication.names import Execute, serving_views
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready, servable, serving_sql
from spark_jobs.storage import coverage

PREFIX = "pin_"
DONE = "done"


def create(
    execute: Execute,
    views: Views,
    store: Store,
    name: str | None = None,
    at: datetime | None = None,
    keep: timedelta | None = None,
    *,
    is_published: bool = False,
) -> Pin:
    """Pin the platform's answers as of `at` (default: now); `keep`: retention drops it after that time.

    is_published: without what came after the builds. A name that is taken gives the same pin again, and finishes one
    that was left half made; with `at`: LedgerError.
    """
    name = checked(name or f"p{datetime.now(UTC):%Y%m%d_%H%M%S}")
    pin = begin(store, name, at, keep, is_published=is_published)
    if pin.state != DONE:
        give_names(execute, views, store, pin)
        pin = store.set_pin(pin.name, DONE)
    return pin


def begin(
    store: Store,
    name: str,
    at: datetime | None = None,
    keep: timedelta | None = None,
    *,
    is_published: bool = False,
) -> Pin:
    """The pin without names in Spark's catalog: its row in the ledger, by which the read server answers."""
    pin = store.pin(name)
    if pin is not None and at is not None and pin.now != at:
        raise LedgerError(f"the pin {name} exists already, as of {pin.now.isoformat()}; choose another name")
    if pin is not None:
        return pin
    at = come(at or datetime.now(UTC))
    publication = store.publication_at(at)
    if publication is None:
        raise LedgerError(f"nothing was published by {at.isoformat()}, so there is nothing to pin")
    until = datetime.now(UTC) + keep if keep else None
    head = built_upto(store, publication) if is_published else head_at(store, publication, at)
    return store.begin_pin(name, publication.id, head, at, until)


def come(at: datetime) -> datetime:
    """The moment. LedgerError where it is still to come: nobody knows its answers."""
    if at > datetime.now(UTC):
        raise LedgerError(f"{at.isoformat()} has not come yet")
    return at


@contextmanager
def temporary(execute: Execute, views: Views, store: Store, at: datetime) -> Iterator[Pin]:
    """A pin as of then, dropped afterwards."""
    name = f"asked_{os.getpid()}_{datetime.now(UTC):%Y%m%d%H%M%S}"
    try:
        yield create(execute, views, store, name, at, keep=timedelta(days=1))
    finally:
        if store.pin(name) is not None:
            drop(execute, store, name)


def checked(name: str) -> str:
    """The pin's name without the prefix of its schema. LedgerError where it cannot be a name."""
    name = name.removeprefix(PREFIX)
    if not PIN.fullmatch(name):
        raise LedgerError(f"{name!r} cannot name a pin: lower case letters, digits and _, at most 48, a letter first")
    return name


def schema(name: str) -> str:
    return f"{PREFIX}{checked(name)}"


def drop(execute: Execute, store: Store, name: str) -> None:
    """Remove the schema, then the pin. LedgerError where there is no such pin."""
    name = checked(name)
    if store.pin(name) is None:
        raise unknown(store, name)
    store.set_pin(name, "dropping")  # nobody takes its names for lost
    execute(f"DROP SCHEMA IF EXISTS {schema(name)} CASCADE")
    store.drop_pin(name)


def by_files(store: Store, views: Views, name: str) -> LocalAnswers:
    """What the pin's views answer, from the tables' files: by delta-rs and DuckDB, without a server. LedgerError."""
    pin = store.pin(checked(name))
    if pin is None:
        raise unknown(store, checked(name))
    return LocalAnswers(views, sources_of(views, store, pin), pin.head, pin.now)


def unknown(store: Store, name: str) -> LedgerError:
    """There is no such pin, or no more."""
    if (erasure := store.ended_by_erasure(name)) is not None:
        return LedgerError(f"erasure {erasure} has ended the pin {name}: it showed somebody who is forgotten")
    return LedgerError(f"no pin is called {name}; `tidemark pin list` shows them")


def due(store: Store) -> list[Pin]:
    """Pins that need not be kept any longer."""
    return [pin for pin in store.pins() if pin.keep_until is not None and pin.keep_until < datetime.now(UTC)]


def describe(pin: Pin) -> dict[str, Any]:
    """A pin as a row, for people and programs."""
    return {
        "schema": schema(pin.name),
        "publication": pin.publication_id,
        "head": pin.head,
        "now": pin.now.isoformat(),
        "created_at": pin.created_at.isoformat(),
        "keep_until": pin.keep_until.isoformat() if pin.keep_until else None,
        "state": pin.state,
    }


def built_upto(store: Store, publication: Publication) -> int:
    """The highest lsn that a view is built to; one that was held back is pinned with its partials up to there."""
    return max((source.cut for source in store.sources(publication).values()), default=publication.cut)


def head_at(store: Store, publication: Publication, at: datetime) -> int:
    """The highest lsn whose partials, and those of all lsns before it, were committed by `at`."""
    cuts = [source.cut for source in store.sources(publication).values()]
    head = min(cuts, default=publication.cut)
    computed = coverage.covered(head)
    while head + 1 in computed and (committed := computed[head + 1].at) is not None and committed <= at:
        head += 1
    return max(head, built_upto(store, publication))


def give_names(execute: Execute, views: Views, store: Store, pin: Pin, only: str | None = None) -> None:
    """Make the schema and its views, or one; those that are there already came from the same row of the ledger."""
    execute(f"CREATE SCHEMA IF NOT EXISTS {schema(pin.name)}")
    sources = sources_of(views, store, pin)
    existing = serving_views(execute, schema(pin.name))
    for view in servable(views, sources):
        if view.name not in existing and only in (None, view.name):
            sql = serving_sql(view, sources, views, head=pin.head, now=pin.now)
            execute(f"CREATE VIEW {schema(pin.name)}.`{view.name}` AS {sql}")


def sources_of(views: Views, store: Store, pin: Pin) -> Mapping[str, Source]:
    """One per view; one that still lacked partials up to the pin's head has no answer in it."""
    sources = ready(views, store.sources(pin.publication_id), store.promoted(pin.now))
    unfilled = holes(views, sources, pin.head)
    return {view_id: source for view_id, source in sources.items() if view_id not in unfilled}
