"""`rollback`: serve what an earlier publication showed; the only way backwards (I16).

ledger -> (its tables and the speed partials past its cut are still there?) -> a new publication with its sources, and
with the versions that its names were served from.
"""

from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_jobs.ledger.schema import Publication
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.ledger.store import Store
from spark_jobs.publication.fitness import PublishRefused, holes
from spark_jobs.publication.names import Execute, ensure_named
from spark_jobs.publication.publish import deciding, finish, guarded, roll_forward
from spark_jobs.registry.views import Views
from spark_jobs.serving.render import ready
from spark_jobs.storage import tables


def rollback(execute: Execute, views: Views, store: Store, to: int | None = None) -> Publication:
    """Serve the sources of an earlier publication again, as a new publication; by default what readers saw before.

    Names go back to the versions that they were served from when readers last saw it. A view that had no answer then
    keeps the one that it has. Raises PublishRefused where its tables or the speed partials past its cut are gone.
    """
    with deciding(store) as held:
        alone = guarded(execute, held)
        ensure_named(alone, views)
        roll_forward(alone, views, store)
        target = _target(store, to)
        shown = _answering(views, store.sources(target))
        _refuse_missing_versions(target, views, shown)
        missing = holes(views, shown)
        if missing:
            view_id, lsn = next(iter(missing.items()))
            raise PublishRefused(
                f"publication {target.id}: view {view_id} lacks speed partials of lsn {lsn}, and so would its answers"
            )
        sources = {**store.current_sources(), **shown}
        promoted = _promoted_then(views, store, target, sources)
        publication = store.begin_publication(
            "rollback", sources, cut=target.cut, restores=target.id, promoted=promoted
        )
        finish(alone, views, store, publication)
        return publication


def _target(store: Store, to: int | None) -> Publication:
    """The publication asked for, or the newest that readers saw before and that shows something else."""
    current = store.current_publication()
    if current is None:
        raise PublishRefused("nothing is published yet")
    live = {p.id: p for p in store.live_publications() if p.state == "done" and p.kind != "rollback"}
    if to is not None and to in live and not _differs(store, live[to], current):
        raise PublishRefused(f"publication {to} shows what readers see already")
    wanted = [p.id for p in store.shown_before(current)] if to is None else [to]
    for number in wanted:
        if number in live and _differs(store, live[number], current):
            return live[number]
    shown = current.id if current.restores is None else current.restores
    what = f"publication {to}" if to is not None else f"a publication before {shown}"
    raise PublishRefused(f"{what} is not there to roll back to; `tidemark batch status` lists those that are")


def _differs(store: Store, target: Publication, current: Publication) -> bool:
    """Whether a view that both have is served from another source."""
    then, now = store.sources(target), store.sources(current)
    return any(then[view_id] != now[view_id] for view_id in then.keys() & now.keys())


def _answering(views: Views, sources: Mapping[str, Source]) -> dict[str, Source]:
    """The sources but for those of views that nothing was built of yet, and that wait for partials of every lsn."""
    waiting = holes(views, {view_id: source for view_id, source in sources.items() if source == UNBUILT})
    return {view_id: source for view_id, source in sources.items() if view_id not in waiting}


def _promoted_then(views: Views, store: Store, target: Publication, sources: Mapping[str, Source]) -> dict[str, int]:
    """Name -> its version when readers last saw the target, of names that another one has been promoted to since."""
    then, now = store.promoted(store.replaced_at(target.id)), store.promoted()
    since = {name for name, version in now.items() if version != then.get(name)}
    served = ready(views, sources, then)
    return {v.name: v.version for v in views if v.id in served and v.name in since and v.version != now[v.name]}


def _refuse_missing_versions(target: Publication, views: Views, sources: Mapping[str, Source]) -> None:
    for view in views:
        for table, version in sources.get(view.id, UNBUILT).tables(view):
            try:
                DeltaTable(tables.path(table), version=version)
            except DeltaError as error:
                raise PublishRefused(f"publication {target.id}: {table} version {version} is gone ({error})") from error
