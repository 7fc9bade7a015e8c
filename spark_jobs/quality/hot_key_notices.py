"""Notices about keys of sequence views that are never quiet: bots, machines, a key that was chosen too wide.

stored rows of a build -> stretches longer than the horizon, hot keys -> a sentence per view.
All rows of a stretch are kept. But each new row of such a key resolves its whole stretch, and the stretch grows, until
the key is hot (`batch/hot_keys.py`). The remedy is the view's: a narrower key (`views/ad_click_through.py`), or a
carried row (`views/bus_speed.py`).
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta

from spark_jobs.definitions.bound_view import FOREVER, SequenceView
from spark_jobs.ledger.schema import Build
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader

NAMED = 3
MANY = 100
"""Fewer rows in a stretch cost nothing: an order that waited for a week is one row."""


def long_stretches(views: Views, builds: Mapping[str, Build], horizon: timedelta) -> Iterator[str]:
    """A sentence for each view with many rows in a stretch longer than `horizon`; open ends do not count."""
    microseconds = horizon // timedelta(microseconds=1)
    query = (
        "SELECT key, count(*) OVER () FROM (SELECT key, count(*) AS size FROM stored "
        f"WHERE stretch_end < {FOREVER} GROUP BY key, stretch_end "
        f"HAVING stretch_end - min(ts) > {microseconds} AND size >= {MANY}) "
        f"GROUP BY key ORDER BY sum(size) DESC, key LIMIT {NAMED}"
    )
    for view in views:
        if isinstance(view, SequenceView) and view.id in builds:
            with duckdb_reader.connect({"stored": (view.tables[0], builds[view.id].batch_version)}) as con:
                longest = con.execute(query).fetchall()
            if longest:
                named = ", ".join(str(key) for key, _ in longest)
                yield (
                    f"{view.id}: {longest[0][1]:,} keys have not been quiet for more than {horizon.days} days, such as "
                    f"{view.key} {named}; each new row of theirs resolves all that long"
                )


def hot_keys(store: Store, run_id: str) -> Iterator[str]:
    """A sentence for each view that has hot keys in a run's build."""
    for view_id, built in store.builds(run_id).items():
        if keys := store.hot_keys(view_id, built.batch_version):
            named = ", ".join(hot.key for hot in keys[:NAMED])
            yield (
                f"{view_id}: {len(keys):,} keys have more than {settings().stretch_max_rows:,} rows in a stretch that "
                f"goes on, such as {named}; they are served as of this build, and their new rows wait for the next"
            )
