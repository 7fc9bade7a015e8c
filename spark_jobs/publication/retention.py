"""`retention`: drop due pins, expire old publications, and remove files and partials that nothing live needs.

old publications -> expired -> vacuum of `batch.*` by delta-rs, keeping every version that the ledger still names; and a
request to the speed application to trim the partials that no live publication reads.
"""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from spark_jobs.ledger.source import UNBUILT
from spark_jobs.ledger.store import Store
from spark_jobs.publication import pins
from spark_jobs.publication.names import Execute
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from spark_jobs.storage.vacuum import UNREAD_HOURS, vacuum

FACTS_KEPT_HOURS = 7 * 24
"""Facts are read at their newest version; older versions serve queries under way, and looking back a little."""


@dataclass(frozen=True)
class Retained:
    """`files`: how many were removed, by table; `trim_up_to`: partials up to that lsn were asked to be trimmed."""

    expired: list[int]
    dropped_pins: list[str]
    files: dict[str, int]
    trim_up_to: int


def retain(
    store: Store,
    views: Views,
    event_types: Iterable[str],
    connect: Callable[[], AbstractContextManager[Execute]],
    grace_hours: int = UNREAD_HOURS,
) -> Retained:
    """Do all of it, while no run is at work (else RunActive). `connect` is called only if a pin is due."""
    with store.maintenance("retention"):
        dropped = [pin.name for pin in pins.due(store)]
        if dropped:
            with connect() as execute:
                for name in dropped:
                    pins.drop(execute, store, name)
        expired = store.expire_publications(datetime.now(UTC) - timedelta(days=settings().publications_kept_days))
        kept = kept_versions(store, views)
        files = {table: vacuum(tables.path(table), grace_hours, keep) for table, keep in kept.items()}
        for table in [*tables.decoded(event_types), tables.IDENTITIES, tables.VIEW_REJECTS]:
            files[table] = vacuum(tables.path(table), FACTS_KEPT_HOURS)
        store.forget_history(datetime.now(UTC) - timedelta(days=settings().history_days))
        trim_up_to = store.lowest_live_cut()
        if trim_up_to > 0:
            store.request("trim", up_to_lsn=trim_up_to)
        return Retained(expired, dropped, {table: n for table, n in files.items() if n}, trim_up_to)


def kept_versions(store: Store, views: Views) -> dict[str, list[int]]:
    """Table -> versions that a live publication reads, or that a run may still publish."""
    sources = [store.sources(publication) for publication in store.live_publications()]
    sources += [store.built_sources(run.run_id) for run in store.runs() if run.state in ("active", "failed")]
    kept: dict[str, set[int]] = {}
    for of_views in sources:
        for view in views:
            for table, version in of_views.get(view.id, UNBUILT).tables(view):
                kept.setdefault(table, set()).add(version)
    return {table: sorted(needed) for table, needed in kept.items()}
