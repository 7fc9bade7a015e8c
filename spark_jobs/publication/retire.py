"""`view retire`: remove all of a view that nobody computes any more, but for its text.

id of a view whose file is gone -> no reader needs it -> its serving name goes, publications show it no more, and its
batch tables are removed. The ledger keeps its text, so that the id never means something else; its partials go with the
next trims. If the file comes back, the view begins as a new one does: a rollback or a pin of a past moment does not
show what was removed.
"""

import re
from collections.abc import Iterator

from pyarrow.fs import FileSystem, FileType

from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication.names import Execute, serving_views
from spark_jobs.publication.publish import deciding, guarded
from spark_jobs.registry.views import Views
from spark_jobs.storage import tables


class StillNeeded(LedgerError):
    """Who needs the view, and what to do first."""


def retire(execute: Execute, views: Views, store: Store, view_id: str) -> list[str]:
    """Remove the view; returns what was removed.

    Raises StillNeeded; RunActive while a run is at work; LedgerError if there never was such a view.
    """
    if view_id not in store.view_texts():
        raise LedgerError(f"no layer ever computed a view {view_id}; `tidemark views` lists those that there are")
    with store.maintenance("retire"), deciding(store) as held:
        if reasons := list(_needed(views, store, view_id)):
            raise StillNeeded(f"{view_id} is still needed: {'; '.join(reasons)}")
        alone = guarded(execute, held)
        return [*_remove_name(alone, views, store, view_id), *_remove_tables(alone, store, view_id)]


def _remove_name(execute: Execute, views: Views, store: Store, view_id: str) -> Iterator[str]:
    """Its serving name, unless another version has it."""
    name = re.sub(r"_v\d+$", "", view_id)
    if name not in views.served and name in serving_views(execute, "serving"):
        execute(f"DROP VIEW {tables.serving(name)}")
        store.forget_serving_sql(name)
        yield tables.serving(name)


def _remove_tables(execute: Execute, store: Store, view_id: str) -> Iterator[str]:
    """Its batch tables. The ledger forgets their versions first: those of tables made anew begin at 0 again."""
    store.forget_view(view_id)
    for table in batch_tables(view_id):
        if _remove(table):
            execute(f"DROP TABLE IF EXISTS {table}")
            yield table


def _needed(views: Views, store: Store, view_id: str) -> Iterator[str]:
    view = views.by_id.get(view_id)
    if view is not None:
        others = [other.id for other in views if view.name in other.looked_up]
        others += [chained.name for chained in views.chained if chained.base.name == view.name]
        if others and views.by_name[view.name] is view:
            yield f"{', '.join(sorted(others))} read{'s' if len(others) == 1 else ''} it"
        yield f"its file is there: remove {view_id}.py, then `./tidemark restart speed`"
    for pin in store.pins():
        if view_id in store.sources(pin.publication_id):
            yield f"pin {pin.name} shows it: `./tidemark pin drop {pin.name}`"


def _remove(table: str) -> bool:
    """Delete the table's files; returns whether there were any."""
    fs, path = FileSystem.from_uri(tables.path(table))
    if fs.get_file_info(path).type is not FileType.Directory:
        return False
    fs.delete_dir(path)
    return True
