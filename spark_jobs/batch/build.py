"""`build`: build every view at the run's cut, as new versions of its batch tables, which nobody sees yet.

facts -> (per view: all, touched buckets, merged, or re-resolved) -> batch.<view> -> one ledger row per view.
"""

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from spark_jobs.batch import build_aggregate, build_sequence
from spark_jobs.batch.build_tasks import BuildMode, BuildTask, build_task, days_together
from spark_jobs.batch.hot_keys import hot_keys
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.ledger.schema import Build, HotKey, Run
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables

Say = Callable[[str], None]


def build(spark: SparkSession, store: Store, views: Views, run_id: str, say: Say) -> None:
    """Build all views of the run; nothing is built or published if nothing is new and nothing is forced (I16)."""
    run = store.active_run(run_id)
    if (published := store.publication_of(run_id)) is not None:
        say(f"run {run_id} is published already, as publication {published.id}")
        return
    current = store.current_publication()
    tasks = _tasks(store, views, run, store.sources(current))
    if current is not None and all(task.mode is BuildMode.SAME and task.base.cut == task.cut for task in tasks):
        say(f"nothing is new at cut {run.cut}: publication {current.id} stands")
        store.progress(run_id, "build", nothing_new=True)
        return
    tasks.sort(key=lambda task: (isinstance(task.view, AggregateView), task.view.id))  # sequences cost the most
    with ThreadPoolExecutor(settings().cores) as pool:
        for line in pool.map(lambda task: _build(spark, store, task), tasks):
            say(line)
    store.progress(run_id, "build", nothing_new=False)


def _tasks(store: Store, views: Views, run: Run, sources: dict[str, Source]) -> list[BuildTask]:
    changed = changed_days(store, run)
    bases = with_unbuilt((view.id for view in views), sources)
    new = {cut: _new_days(views, cut, run.cut) for cut in {base.cut for base in bases.values()}}
    return [build_task(view, run, bases[view.id], new[bases[view.id].cut], changed) for view in views]


def changed_days(store: Store, run: Run) -> dict[str, list[str]]:
    """Event type -> days whose facts this run has replaced, or a run after the published build."""
    return days_together(earlier.summary.get("changed_days", {}) for earlier in store.runs_since_base(run.run_id))


def _new_days(views: Iterable[View], above: int, cut: int) -> dict[str, list[str]]:
    """Event type -> days of its facts with an lsn in (above, cut]; read from the files, as Spark plans each table."""
    if above >= cut:
        return {}
    types = sorted({event_type for view in views for event_type in view.event_types})
    new = f"WHERE lsn > {above:d} AND lsn <= {cut:d}"
    with duckdb_reader.connect({event_type: tables.facts(event_type) for event_type in types}) as con:
        days = {name: con.execute(f'SELECT DISTINCT day FROM "{name}" {new}').fetchall() for name in types}
    return {event_type: [day.isoformat() for (day,) in of_type] for event_type, of_type in days.items()}


def _build(spark: SparkSession, store: Store, task: BuildTask) -> str:
    """Build one view and record its versions; returns the line to show."""
    started = time.monotonic()
    if task.mode is BuildMode.SAME:
        source = replace(task.base, cut=task.cut, hot_keys=())
    elif isinstance(task.view, AggregateView):
        source = build_aggregate.build(spark, task.view, task)
    else:
        source = build_sequence.build(spark, task.view, task)
    rows = duckdb_reader.row_count(task.view.tables[-1], source.versions[-1])
    seconds = time.monotonic() - started
    hot: list[HotKey] | None = None
    if isinstance(task.view, SequenceView) and task.mode is not BuildMode.SAME:
        hot = hot_keys(task.view, source.versions[0], settings().stretch_max_rows)
    store.record_build(
        Build(
            run_id=task.run_id,
            view_id=task.view.id,
            mode=task.mode.value,
            row_count=rows,
            seconds=seconds,
            finished_at=datetime.now(UTC),
            **source.columns(),
        ),
        hot,
    )
    store.progress(task.run_id, "decode")  # still alive, and still not superseded
    touched = f", {len(task.days)} days" if task.mode is BuildMode.BUCKETS else ""
    return f"built {task.view.id}: {task.mode.value}{touched}, {rows:,} rows, {seconds:.1f} s"
