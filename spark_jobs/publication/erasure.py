"""Finish an erasure: nothing that readers, or anybody with the files, can come back to has the records any more.

revisions that landed -> a publication past them, marts made of it -> what showed the records is ended (publications,
pins, builds, pages) -> its files are deleted -> the speed application takes the bytes out of the log (I18).
"""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable
from pyarrow.fs import FileSelector, FileSystem, FileType

from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger.erasures import ENDED
from spark_jobs.ledger.schema import Erasure, Publication
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import mirror, pins, retention
from spark_jobs.publication.names import Execute
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import delta_log, tables
from spark_jobs.storage.vacuum import vacuum

ERASE = "erase"
MARTS = "marts"
Connect = Callable[[], AbstractContextManager[Execute]]


class NotYet(LedgerError):
    """What the erasure waits for."""


def finish(
    store: Store, views: Views, event_types: Iterable[str], connect: Connect, seconds: float
) -> Iterator[tuple[Erasure, dict[str, Any]]]:
    """Finish all erasures that readers have a publication past; with what came of each. Raises NotYet where the first
    one waits for something, RunActive while a run is at work.

    seconds: how long the speed application may take for its part.
    """
    while waiting := store.open_erasures():
        erasure = waiting[0]
        published, upto = _past(store, erasure)
        _marts_since(published)
        _refuse_what_nobody_makes(store, views, event_types)
        with store.maintenance("erasure"):
            _end(store, erasure, connect)
            files = _delete(store, views, event_types)
        erased = _taken_out(store, upto, seconds)
        outcome = store.finish_erasure(erasure.id, {"files": files, "erased": erased})
        mirror.mirror(store)
        for table in tables_of("ops"):
            _keep_newest(table)
        yield erasure, outcome


def _past(store: Store, erasure: Erasure) -> tuple[Publication, int]:
    """The publication of whose views each has been built past the erasure, and the lsn up to which all are built."""
    if erasure.lsn is None:
        raise NotYet(f"erasure {erasure.id} has not landed yet: is the speed application up? `tidemark status`")
    published = store.current_publication()
    cuts = {view_id: source.cut for view_id, source in store.current_sources().items()}
    before = sorted(view_id for view_id, cut in cuts.items() if cut < erasure.lsn)
    if published is None or published.done_at is None or before:
        shown = f"{before[0]} shows lsn {cuts[before[0]]}" if before else "nothing is published"
        raise NotYet(f"erasure {erasure.id} counts from lsn {erasure.lsn} on, and {shown}: a batch run comes first")
    return published, min(cuts.values(), default=published.cut)


def _marts_since(published: Publication) -> None:
    """Raises NotYet where a mart was made of an older publication."""
    for table in tables_of(MARTS):
        made = datetime.fromtimestamp(DeltaTable(tables.path(table)).history(1)[0]["timestamp"] / 1000, UTC)
        if published.done_at is not None and made < published.done_at:
            raise NotYet(f"{table} was made before publication {published.id}: `tidemark dbt build`, or the DAG marts")


def _refuse_what_nobody_makes(store: Store, views: Views, event_types: Iterable[str]) -> None:
    """Raises NotYet where a table has no view or no schema any more: nothing writes it without the records."""
    made = {table for view in views for table in view.tables}
    gone = {table: id_ for id_ in store.view_texts() if id_ not in views.by_id for table in batch_tables(id_)}
    for table in (table for table in tables_of("batch") if table not in made):
        if table in gone:
            raise NotYet(f"{table} is of no view that there is: `tidemark view retire {gone[table]}` removes it")
        raise NotYet(f"{table} is of no view that there ever was: remove its folder {tables.path(table)}")
    if other := {*tables_of("facts")} - {*map(tables.facts, event_types)}:
        table = min(other)
        raise NotYet(
            f"{table} is of no event type that there is: put its schema back, or remove its folder {tables.path(table)}"
        )


def tables_of(schema: str) -> list[str]:
    """The Delta tables in a schema's folder."""
    fs, folder = FileSystem.from_uri(f"{settings().warehouse}/{schema}.db")
    found = fs.get_file_info(FileSelector(folder, allow_not_found=True))
    names = sorted(one.base_name for one in found if one.type is FileType.Directory)
    return [table for table in (f"{schema}.{name}" for name in names) if DeltaTable.is_deltatable(tables.path(table))]


def _end(store: Store, erasure: Erasure, connect: Connect) -> None:
    """End what shows the records: pins that reach to the first of them, publications, builds of runs that failed.

    What is ended is written down before: a second try would not find it any more.
    """
    touched = [pin.name for pin in store.pins() if pin.head >= erasure.first_lsn]
    if touched:
        store.note_ended(erasure.id, "pins", touched)
        with connect() as execute:
            for name in touched:
                pins.drop(execute, store, name)
    store.note_ended(erasure.id, ENDED, store.expire_publications(datetime.now(UTC)))
    store.forget_what_was_said(f"erasure {erasure.id}")
    for folder in (settings().data_docs, settings().home / "gx" / "validations"):
        shutil.rmtree(folder, ignore_errors=True)


def _delete(store: Store, views: Views, event_types: Iterable[str]) -> Mapping[str, int]:
    """Delete every file of the batch tables and marts that their readers do not need now; how many, by table."""
    kept: dict[str, list[int]] = {table: [] for table in tables_of("batch")} | retention.kept_versions(store, views)
    for table, versions in kept.items():
        delta_log.forget_bounds(tables.path(table), versions)
    kept |= {name: [] for name in (*tables.decoded(event_types), tables.IDENTITIES, tables.VIEW_REJECTS)}
    removed = {table: vacuum(tables.path(table), 0, keep) for table, keep in kept.items()}
    removed |= {table: _keep_newest(table) for table in tables_of(MARTS)}
    return {table: files for table, files in removed.items() if files}


def _keep_newest(table: str) -> int:
    """Delete all files but those of the newest version, and the older versions of the log, which hold bounds of all
    columns; returns how many files are deleted.
    """
    delta_log.forget_versions(tables.path(table))
    return vacuum(tables.path(table), hours=0)


def _taken_out(store: Store, upto: int, seconds: float) -> int:
    """The speed application, which alone writes the log, takes out the records; returns how many."""
    number, until = store.request(ERASE, up_to_lsn=upto), time.monotonic() + seconds
    while (request := store.answered(number)) is None:
        if time.monotonic() >= until:
            raise NotYet("the speed application has not taken the records out of the log yet: ask again")
        time.sleep(0.2)
    if "error" in request.answer:
        raise LedgerError(f"the speed application could not take the records out: {request.answer['error']}")
    return int(request.answer["records"])
