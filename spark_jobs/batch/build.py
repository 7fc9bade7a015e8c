"""`build`: build every view at the run's cut, as new versions of its batch tables, which nobody sees yet.

facts --derive: each file once, for all views--> staged partials and rows --merge: per view and range of keys--> files
-> one commit per table -> one ledger row per view. Spark distributes, DuckDB computes, delta-rs commits (ADR 34).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import repeat

from pyspark.sql import SparkSession

from spark_jobs.batch import rejected
from spark_jobs.batch.build_tasks import BuildMode, BuildTask, build_task, days_together
from spark_jobs.batch.build_units import NewVersion, new_versions, planned
from spark_jobs.batch.derive import Staged, Wanted, derive
from spark_jobs.batch.hot_keys import hot_keys
from spark_jobs.batch.merge import columns, merge
from spark_jobs.batch.progress import Say, fenced, watched
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.ledger.runs import BASE
from spark_jobs.ledger.schema import Build, HotKey, Run
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings
from spark_jobs.storage import batch_tables, duckdb_reader, tables, task_files
from spark_jobs.storage.data_files import Committing
from spark_jobs.storage.fact_slices import Slice
from spark_jobs.storage.side_inputs import SideInputs


def build(spark: SparkSession, store: Store, views: Views, run_id: str, say: Say) -> None:
    """Build all views of the run; nothing is built or published if nothing is new and nothing is forced (I16)."""
    run = store.active_run(run_id)
    if (published := store.publication_of(run_id)) is not None:
        say(f"run {run_id} is published already, as publication {published.id}")
        return
    current = store.current_publication()
    store.progress(run_id, run.step, **{BASE: None if current is None else current.id})
    tasks = _tasks(store, views, run, store.sources(current))
    if current is not None and all(task.mode is BuildMode.SAME and task.base.cut == task.cut for task in tasks):
        say(f"nothing is new at cut {run.cut}: publication {current.id} stands")
        store.progress(run_id, "build", nothing_new=True)
        return
    with store.writing(run_id) as held:
        for task, version in _built(spark, store, tasks, fenced(held), say):
            held.renew()  # so the version is this process's own
            say(_recorded(store, task, version))
        store.progress(run_id, "build", nothing_new=False)


def _tasks(store: Store, views: Views, run: Run, sources: dict[str, Source]) -> list[BuildTask]:
    bases = with_unbuilt((view.id for view in views), sources)
    changed = changed_days(store, run, bases)
    new = {cut: _new_days(views, cut, run.cut) for cut in {base.cut for base in bases.values()}}
    return [build_task(view, run, bases[view.id], new[bases[view.id].cut], changed[view.id]) for view in views]


def changed_days(store: Store, run: Run, sources: Mapping[str, Source]) -> dict[str, dict[str, list[str]]]:
    """View id -> event type -> days whose facts this run has replaced, or a run after the one that built its source."""
    since = store.runs_since_built(run.run_id, sources)
    return {
        view_id: days_together(earlier.summary.get("changed_days", {}) for earlier in runs)
        for view_id, runs in since.items()
    }


def _new_days(views: Iterable[View], above: int, cut: int) -> dict[str, list[str]]:
    """Event type -> days of its facts with an lsn in (above, cut]; read from the files, as Spark plans each table."""
    if above >= cut:
        return {}
    types = sorted({event_type for view in views for event_type in view.event_types})
    new = f"WHERE lsn > {above:d} AND lsn <= {cut:d}"
    with duckdb_reader.connect({event_type: tables.facts(event_type) for event_type in types}) as con:
        days = {name: con.execute(f'SELECT DISTINCT day FROM "{name}" {new}').fetchall() for name in types}
    return {event_type: [day.isoformat() for (day,) in of_type] for event_type, of_type in days.items()}


def _built(
    spark: SparkSession, store: Store, tasks: Sequence[BuildTask], committing: Committing, say: Say
) -> Iterator[tuple[BuildTask, NewVersion]]:
    """Each task with what it made."""
    work = [task for task in tasks if task.mode is not BuildMode.SAME]
    yield from ((task, NewVersion(replace(task.base, cut=task.cut, hot_keys=()))) for task in tasks if task not in work)
    if not work:
        return
    for task in work:
        for table, schema in columns(task.view).items():
            batch_tables.create(table, schema)
    side_inputs = SideInputs([task.view for task in work], work[0].cut).before(work[0].cut + 1)
    run_id = work[0].run_id
    with task_files.scratch(f"build.{run_id}") as folder:
        wanted = _wanted(work)
        rejected.create()
        with watched(spark, store, run_id, "what the facts give", say):
            staged = derive(spark, wanted, side_inputs, folder)
            if deep := _deep(work, staged):
                for view_id, older in derive(spark, deep, side_inputs, folder).items():
                    staged[view_id].add(older)
        rejected.record(wanted, staged, committing)
        plans = [planned(task, staged[task.view.id]) for task in work]
        units = [unit for plan in plans for unit in plan.units]
        with watched(spark, store, run_id, "files of new versions", say):
            done = iter(merge(spark, units))
        store.progress(run_id)  # still not superseded
        results = [[next(done) for _ in plan.units] for plan in plans]
        with ThreadPoolExecutor(settings().cores) as pool:
            yield from zip(work, pool.map(new_versions, plans, results, repeat(committing)), strict=True)


def _wanted(tasks: Iterable[BuildTask]) -> list[Wanted]:
    """What the tasks read: views that want the same facts are together."""
    views: dict[Slice, list[BuildTask]] = {}
    for task in tasks:
        above = 0 if task.mode is BuildMode.FULL else task.base.cut
        views.setdefault(Slice(task.cut, above, task.days), []).append(task)
    return [Wanted(facts, tuple(task.view for task in of), horizon=_horizons(of)) for facts, of in views.items()]


def _horizons(tasks: Iterable[BuildTask]) -> Mapping[str, int]:
    grown = ((task.view.id, task.base.horizon) for task in tasks if task.mode is BuildMode.RESOLVE)
    return {view_id: since_epoch(horizon) for view_id, horizon in grown if horizon is not None}


def _deep(tasks: Iterable[BuildTask], staged: Mapping[str, Staged]) -> list[Wanted]:
    """The older facts of keys with a new row before the horizon; the usual case has none."""
    deep = [task for task in tasks if task.view.id in staged and staged[task.view.id].deep_keys]
    return [
        Wanted(Slice(task.base.cut), (task.view,), only_keys={task.view.id: staged[task.view.id].deep_keys})
        for task in deep
    ]


def _recorded(store: Store, task: BuildTask, made: NewVersion) -> str:
    """Record what was built of a view; returns the line to show."""
    view, source = task.view, made.source
    rows = duckdb_reader.row_count(view.tables[-1], source.versions[-1])
    hot: list[HotKey] | None = None
    if isinstance(view, SequenceView) and task.mode is not BuildMode.SAME:
        hot = hot_keys(view, source.versions[0], settings().stretch_max_rows)
    store.record_build(
        Build(
            run_id=task.run_id,
            view_id=view.id,
            mode=task.mode.value,
            row_count=rows,
            seconds=made.seconds,
            finished_at=datetime.now(UTC),
            **source.columns(),
        ),
        hot,
    )
    touched = f", {len(task.days)} days" if task.mode is BuildMode.BUCKETS else ""
    return f"built {view.id}: {task.mode.value}{touched}, {rows:,} rows, {made.seconds:.1f} s of work"
