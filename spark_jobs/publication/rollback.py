"""`rollback`: serve what an earlier publication showed; the only way backwards (I16).

ledger -> (its tables and the speed partials past its cut are still there?) -> a new publication with its sources.
"""

from collections.abc import Mapping

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from spark_jobs.ledger.schema import Publication
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.ledger.store import Store
from spark_jobs.publication.names import Execute, ensure_named
from spark_jobs.publication.publish import PublishRefused, deciding, finish, guarded, holes, roll_forward
from spark_jobs.registry.views import Views
from spark_jobs.storage import tables


def rollback(execute: Execute, views: Views, store: Store, to: int | None = None) -> Publication:
    """Serve the sources of an earlier publication again (default: the one before), as a new publication.

    Raises PublishRefused where its tables or the speed partials past its cut are gone.
    """
    with deciding(store) as held:
        alone = guarded(execute, held)
        ensure_named(alone, views)
        roll_forward(alone, views, store)
        target = _target(store, to)
        sources = store.sources(target)
        _refuse_missing_versions(target, views, sources)
        missing = holes(views, sources)
        if missing:
            view_id, lsn = next(iter(missing.items()))
            raise PublishRefused(
                f"publication {target.id}: view {view_id} lacks speed partials of lsn {lsn}, and so would its answers"
            )
        publication = store.begin_publication("rollback", sources, cut=target.cut, restores=target.id)
        finish(alone, views, store, publication)
        return publication


def _target(store: Store, to: int | None) -> Publication:
    current = store.current_publication()
    if current is None:
        raise PublishRefused("nothing is published yet")
    shown = current.id if current.restores is None else current.restores
    live = [p for p in store.live_publications() if p.state == "done" and p.kind != "rollback"]
    wanted = [p for p in live if (p.id < shown if to is None else p.id == to and p.id != shown)]
    if not wanted:
        what = f"publication {to}" if to is not None else f"a publication before {shown}"
        raise PublishRefused(f"{what} is not there to roll back to; `tidemark batch status` lists those that are")
    return wanted[0]


def _refuse_missing_versions(target: Publication, views: Views, sources: Mapping[str, Source]) -> None:
    for view in views:
        for table, version in sources.get(view.id, UNBUILT).tables(view):
            try:
                DeltaTable(tables.path(table), version=version)
            except DeltaError as error:
                raise PublishRefused(f"publication {target.id}: {table} version {version} is gone ({error})") from error
