"""`publish`: choose the set of sources that readers see; the last step of a run, and never half done.

audited builds -> intent row -> ALTER VIEW per serving view that changes -> done row. A reader of one view sees the old
or the new definition, never a missing one (CREATE OR REPLACE VIEW would drop it first). Whoever decides what readers
see, or gives names, holds one lease from before it reads what was decided until its last statement.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from spark_jobs.ledger.leases import Held
from spark_jobs.ledger.schema import Publication
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.ledger.store import Store
from spark_jobs.publication.fitness import PublishRefused, holes, promoted_by, refuse_unfit, sources_of
from spark_jobs.publication.names import Execute, ensure_named, serving_views
from spark_jobs.registry.views import Views
from spark_jobs.serving.render import continues, ready, servable, serving_sql, shows
from spark_jobs.serving.sql import SqlError
from spark_jobs.storage import tables

Hold = Callable[[Execute, Views, Mapping[str, Source], int], list[str]]
"""Holds what would be served to what the files give; a seed chooses the sample (`served_sample.hold`)."""


@dataclass(frozen=True)
class Named:
    """What became of readers' names.

    waiting: of views that have no full history yet; lost: what somebody dropped; left: serving views whose text is of
    a version that nobody computes any more; refused: serving view -> what the server says to its text. It keeps the
    text that it has.
    """

    waiting: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)


def deciding(store: Store) -> AbstractContextManager[Held]:
    """Alone with what readers see: no other process publishes, promotes, rolls back or gives names meanwhile."""
    return store.holding("what readers see")


def ensure_serving(execute: Execute, views: Views, store: Store) -> Named:
    """See to it that schemas, hot tables' names and serving views exist; finish an unfinished publication first.

    A view that no publication knows gets a source with cut 0 and no build: the speed layer alone serves it, once it has
    partials of every lsn.
    """
    with deciding(store) as held:
        alone = guarded(execute, held)
        nameless = {tables.MASTER_LOG, tables.SPEED_PARTIALS} & {*ensure_named(alone, views)}
        was_served = bool(store.serving_sql())
        roll_forward(alone, views, store)
        current = store.current_publication()
        sources = store.sources(current)
        new = {view.id: UNBUILT for view in views if view.id not in sources}
        if current is None or new:
            sources = {**sources, **new}
            publication = store.begin_publication("initial", sources, cut=current.cut if current else 0)
            named = finish(alone, views, store, publication)
        else:
            named = _apply(alone, views, store, sources)
        return replace(named, lost=(*sorted(nameless if was_served else ()), *named.lost))


def guarded(execute: Execute, held: Held) -> Execute:
    """The same, as long as the lease is held: a process that was paused meanwhile says nothing more."""

    def alone(statement: str) -> list[Any]:
        held.renew()
        return execute(statement)

    return alone


def publish(execute: Execute, views: Views, store: Store, run_id: str, hold: Hold) -> Publication | None:
    """Publish a run's builds; None when it has nothing new, the same publication for a run that is published.

    Raises LedgerError for a replay that nobody has approved, and PublishRefused: no passed audit (I17), a newer
    publication or one that it was not built upon (I16), a view that was not built, or would be served otherwise than
    its files say (I20).
    """
    with deciding(store) as held:
        alone = guarded(execute, held)
        store.refuse_unapproved(run_id)
        ensure_named(alone, views)
        roll_forward(alone, views, store)
        run = store.active_run(run_id)
        done = store.publication_of(run_id)
        if done is not None or run.summary.get("nothing_new"):
            store.progress(run_id, "publish")
            return done
        try:
            refuse_unfit(run, store)
            sources, held_back = sources_of(run, views, store)
            served = {view_id: source for view_id, source in sources.items() if view_id not in held_back}
            promoted = promoted_by(run, views, served)
            looked_at = hold(alone, views, ready(views, served, {**store.promoted(), **promoted}), run.cut)
        except PublishRefused as error:
            store.fail_run(run_id, str(error))  # it does not stand in the way of another run
            raise
        publication = store.begin_publication("batch", sources, cut=run.cut, run_id=run_id, promoted=promoted)
        named = finish(alone, views, store, publication)
        about = {"held_back": held_back, "looked_at": looked_at, "refused": dict(named.refused)}
        store.progress(run_id, "publish", publication=publication.id, **about)
        return publication


def roll_forward(execute: Execute, views: Views, store: Store) -> None:
    """Finish the publication that a crash left between intent and done, if there is one."""
    publication = store.unfinished_publication()
    if publication is not None:
        finish(execute, views, store, publication)
        run = store.run(publication.run_id) if publication.run_id is not None else None
        if run is not None and run.state != "superseded":
            store.progress(run.run_id, "publish", publication=publication.id)


def finish(execute: Execute, views: Views, store: Store, publication: Publication) -> Named:
    """Give the serving views the publication's texts, then write that it is done."""
    named = _apply(execute, views, store, store.sources(publication))
    store.finish_publication(publication.id)
    return named


def _apply(execute: Execute, views: Views, store: Store, sources: Mapping[str, Source]) -> Named:
    """Give each serving view its text; touch only those whose text changes.

    A view, or a version of one, that has no text yet waits until it has partials of every lsn, and so does one that
    comes back: a part of its history looks like an answer. Until then the name keeps what it has.
    """
    existing, given = serving_views(execute, "serving"), store.serving_sql()
    sources = ready(views, sources, store.promoted())
    every = {view.name for view in servable(views, sources)}
    sources = _filled(views, sources, given)
    named, lost, refused = servable(views, sources), every & given.keys() - existing, dict[str, str]()
    for view in named:
        name, sql = view.name, serving_sql(view, sources, views)
        if name in existing and given.get(name) == sql:
            continue
        try:
            execute(f"{'ALTER' if name in existing else 'CREATE'} VIEW {tables.serving(name)} AS {sql}")
        except SqlError as error:  # one view that cannot be served takes no other with it
            refused[name] = str(error)
        else:
            store.record_serving_sql(name, sql)
            given[name] = sql
    computed = {view.name for view in (*views, *views.chained) if shows(given.get(view.name, ""), view)}
    waiting = tuple(sorted(every - {view.name for view in named}))
    return Named(waiting, _serving(lost), _serving(given.keys() & existing - computed), refused)


def _filled(views: Views, sources: Mapping[str, Source], given: Mapping[str, str]) -> Mapping[str, Source]:
    """The sources but for those that no name's text is of yet and that lack an lsn."""
    of = [(view, sources[view.id]) for view in views if view.id in sources]
    new = [view.id for view, source in of if not continues(given.get(view.name, ""), view, source)]
    unfilled = holes(views, {view_id: sources[view_id] for view_id in new})
    return {view_id: source for view_id, source in sources.items() if view_id not in unfilled}


def _serving(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(tables.serving, sorted(names)))


def promote(execute: Execute, views: Views, store: Store, name: str, version: int) -> None:
    """Serve a name from another version of its view, now and from now on.

    Raises PublishRefused where there is no such version, or it lacks partials of an lsn that readers would miss.
    """
    with deciding(store) as held:
        sources = store.current_sources()
        known = {view.version: view for view in views if view.name == name and view.id in sources}
        if version not in known:
            there = ", ".join(map(str, sorted(known))) or "none"
            raise PublishRefused(f"{name} has no version {version} to serve; the speed layer computes {there}")
        if lsn := holes(views, sources).get(known[version].id):
            raise PublishRefused(f"version {version} of {name} lacks lsn {lsn}: `tidemark views` shows what is covered")
        store.promote(name, version)
        alone = guarded(execute, held)
        ensure_named(alone, views)
        _apply(alone, views, store, sources)
