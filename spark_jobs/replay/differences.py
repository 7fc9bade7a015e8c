"""What a replay would change of what is published: rows that differ, view by view, each with its cause.

sources in force, the run's builds, up to the run's cut -> differing rows -> their cause, as agreement proves it between
the layers. What no record explains, the replay itself has changed: the same facts were computed otherwise.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from spark_jobs.batch.build import changed_days
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, quote, quote_text
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import Store
from spark_jobs.ledger.view_versions import PROMOTES
from spark_jobs.quality.reconciliation.agreement import attribute
from spark_jobs.quality.reconciliation.causes import Causes
from spark_jobs.registry.views import Views
from spark_jobs.serving import source_diff
from spark_jobs.serving.compare import Comparison
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready
from spark_jobs.serving.source_diff import ViewDifference

D = Dialect.DUCKDB
SIDES = ("published", "replayed")
OTHERWISE = "computed_otherwise"
"""Cause: no record explains the row, so it is what the view makes of the same facts that has changed."""
LOOKED_UP = "looked_up_otherwise"
"""Cause: the row's own values are the same, and what it looks up in other views is not."""


def differences(store: Store, views: Views, run: Run, folder: Path) -> Iterator[ViewDifference]:
    """The views that readers would see otherwise; all rows, with their causes, are in files in `folder`."""
    old, new, promoted = store.current_sources(), store.built_sources(run.run_id), store.promoted()
    sets = (ready(views, old, promoted), ready(views, new, {**promoted, **run.summary.get(PROMOTES, {})}))
    yield from source_diff.between(views, *sets, run.cut, SIDES, folder, _attributing(store, run, old))


def _attributing(
    store: Store, run: Run, old: Mapping[str, Source]
) -> Callable[[LocalAnswers, Served, Comparison], Comparison]:
    """Returns what gives the rows of a comparison a column `cause`."""
    changed = changed_days(store, run, with_unbuilt(store.built_sources(run.run_id), old))

    @cache
    def causes(old_cut: int, days: str) -> Causes:
        return Causes(old_cut, run.cut, json.loads(days))

    def attributed(before: LocalAnswers, view: Served, compared: Comparison) -> Comparison:
        if isinstance(view, ChainedView):
            return _all_by(f"of {view.base.name}", compared)
        if view.id not in before.sources:
            return _all_by(f"version {view.version}", compared)
        days = json.dumps(changed.get(view.id, {}), sort_keys=True)
        shape = compared.shape
        own = replace(shape, values=[name for name in shape.values if name not in view.lookups])
        known = causes(before.sources[view.id].cut, days)
        found = attribute(before, view, replace(compared, shape=own), known, LocalAnswers.answer)
        _name_the_others(found)
        return replace(found, shape=shape)

    return attributed


def _all_by(cause: str, compared: Comparison) -> Comparison:
    said = quote_text(cause, D)
    compared.con.execute(f"CREATE OR REPLACE TEMP TABLE attributed AS SELECT *, {said} AS cause FROM {compared.name}")
    return replace(compared, name="attributed")


def _name_the_others(attributed: Comparison) -> None:
    """Give the rows without a cause theirs; the shape is that of the view's own values."""
    same = " AND ".join(
        f"{quote(f'l_{name}', D)} IS NOT DISTINCT FROM {quote(f'r_{name}', D)}" for name in attributed.shape.values
    )
    looked_up = f"in_left AND in_right AND {same or 'true'}"
    attributed.con.execute(
        f"UPDATE {attributed.name} SET cause = CASE WHEN {looked_up} THEN '{LOOKED_UP}' ELSE '{OTHERWISE}' END "
        "WHERE cause IS NULL"
    )
