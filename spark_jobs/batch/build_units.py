"""Plan the second half of a build, view by view, and make its files versions.

BuildTask, what is staged, files of the published version -> Plan (units, the files that they replace, the horizon)
-> (merge) -> new versions of the view's tables.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

import pyarrow.dataset as ds

from spark_jobs.batch.build_tasks import BuildMode, BuildTask
from spark_jobs.batch.derive import Staged
from spark_jobs.batch.key_ranges import KeyedFile, KeyRange, Weighted, apart, divided, order
from spark_jobs.batch.merge import BUCKET_DAY, ROWS_AT_ONCE, STRETCH_END, Done, Unit
from spark_jobs.definitions.bound_view import AggregateView, SequenceView
from spark_jobs.expressions.epoch import at_micros, since_epoch
from spark_jobs.ledger.source import Source
from spark_jobs.settings import settings
from spark_jobs.storage import batch_tables, duckdb_reader, tables
from spark_jobs.storage.data_files import Committing

MANY_CLOSED = 64
"""So many small files of closed results are written again, as a few large ones."""


@dataclass(frozen=True)
class Plan:
    """The units of a view. horizon: that of the version to come."""

    task: BuildTask
    units: list[Unit]
    staged_seconds: float
    horizon: datetime | None = None


@dataclass(frozen=True)
class NewVersion:
    """What a build made of a view. seconds: of its tasks' work."""

    source: Source
    seconds: float = 0.0


def planned(task: BuildTask, staged: Staged) -> Plan:
    """The units that build the view."""
    if isinstance(task.view, AggregateView):
        return Plan(task, _of_aggregate(task, task.view, staged), staged.seconds)
    horizon = _horizon(task, task.view, staged)
    return Plan(task, _of_sequence(task, task.view, staged, horizon), staged.seconds, horizon)


def _of_aggregate(task: BuildTask, view: AggregateView, staged: Staged) -> list[Unit]:
    everything = KeyRange(view.ordered_by)
    if task.mode is BuildMode.FULL:
        return _units(task, staged, everything, [])
    [(table, version)] = task.base.tables(view)
    built = keyed_files(table, version, view.ordered_by)
    if view.bucket:
        days = [date.fromisoformat(day) for day in task.touched]
        return _units(task, staged, everything, [file for file in built if file.has_any_of(days)])
    return [unit for keys, files in apart(view.ordered_by, built) for unit in _units(task, staged, keys, files)]


def _units(task: BuildTask, staged: Staged, keys: KeyRange, files: Sequence[KeyedFile]) -> list[Unit]:
    """A unit for a range of keys and the files that have it, or more where there are too many rows for one."""
    unit = Unit(
        task.view,
        keys,
        tuple(staged.files),
        built=(_addresses(files),) if files else (),
        without=task.days,
        may_stay=bool(files) and not task.days,
    )
    return _in_ranges(unit, staged, files)


def _in_ranges(unit: Unit, staged: Staged, files: Sequence[KeyedFile]) -> list[Unit]:
    """The unit, or more where there are too many rows for one; `files`: those that it goes on with.

    Files stay as a whole, so they are one unit where none of the sample of new keys is among theirs.
    """
    new = _within(staged, unit.keys)
    is_whole = unit.may_stay and not new
    column = None if is_whole else next(iter(unit.keys.columns), None)
    sample = [*new, *(one for file in files for one in _sample(file, column))]
    ranges = [unit.keys] if is_whole else divided(unit.keys.columns, unit.keys, sample, ROWS_AT_ONCE)
    size, may_stay = sum(weight for _, weight in sample) / len(ranges), unit.may_stay and len(ranges) == 1
    return [replace(unit, keys=keys, rows=size, may_stay=may_stay) for keys in ranges]


def _sample(file: KeyedFile, column: str | None) -> list[Weighted]:
    """The bounds of the file's row groups, which are in the order of the column; its own where those are not known."""
    fragments = ds.dataset(file.address, format="parquet").get_fragments() if column else ()
    groups = [(group.statistics.get(column), group.num_rows) for one in fragments for group in one.row_groups]
    if not groups or not all(bounds for bounds, _ in groups):
        return file.sample()
    return [((bounds[end],), rows / 2) for bounds, rows in groups for end in ("min", "max")]


def _within(staged: Staged, keys: KeyRange) -> list[Weighted]:
    """The staged keys of the sample that are in the range."""
    low = order(keys.low) if keys.low is not None else None
    high = order(keys.high) if keys.high is not None else None
    return [
        (key, weight)
        for key, weight in staged.sample
        if (low is None or order(key) >= low) and (high is None or order(key) < high)
    ]


def _of_sequence(task: BuildTask, view: SequenceView, staged: Staged, horizon: datetime | None) -> list[Unit]:
    rows, opened, closed = list[KeyedFile](), list[KeyedFile](), list[KeyedFile]()
    if task.mode is not BuildMode.FULL:
        rows, results = (keyed_files(table, version, view.ordered_by) for table, version in task.base.tables(view))
        opened, closed = _open_and_closed(results, task.base.horizon)
    unit = Unit(
        view,
        KeyRange(view.ordered_by),
        tuple(staged.files),
        horizon=0 if horizon is None else since_epoch(horizon),
        deep=tuple(staged.deep_keys),
    )
    units = list[Unit]()
    for keys, files in apart(view.ordered_by, [*rows, *opened]):
        known = set(files)
        built = tuple(_addresses(file for file in of if file in known) for of in (rows, opened)) if files else ()
        units += _in_ranges(replace(unit, keys=keys, built=built, may_stay=bool(files)), staged, files)
    if unit.deep:
        drop = replace(unit, staged=(), rows=tables.ROWS_PER_FILE / 10, drop_only=True)
        units += [replace(drop, built=((), (file.address,))) for file in closed]
    return units


def _open_and_closed(results: Iterable[KeyedFile], horizon: datetime | None) -> tuple[list[KeyedFile], list[KeyedFile]]:
    """The files with results that rows may still change, and those that only rows before the horizon can.

    Many small files of the second kind are among the first, and so become few.
    """
    opened, closed = list[KeyedFile](), list[KeyedFile]()
    for file in results:
        is_closed = horizon is not None and file.stretch_end is not None and file.stretch_end < since_epoch(horizon)
        (closed if is_closed else opened).append(file)
    small = [file for file in closed if file.rows < tables.ROWS_PER_FILE / 2]
    if len(small) <= MANY_CLOSED:
        return opened, closed
    return [*opened, *small], [file for file in closed if file not in small]


def keyed_files(table: str, version: int, keys: Sequence[str]) -> list[KeyedFile]:
    """The files of a version of a batch table whose rows are in the order of `keys`."""
    first = keys[0] if keys else ""
    root, found = tables.path(table), list[KeyedFile]()
    for action in batch_tables.files(table, version):
        days = (action.get(f"min.{BUCKET_DAY}"), action.get(f"max.{BUCKET_DAY}"))
        bounds = action.get(f"min.{first}"), action.get(f"max.{first}")
        ends = action.get(f"max.{STRETCH_END}")
        found.append(KeyedFile(f"{root}/{action['path']}", action["num_records"], *bounds, days, ends))
    return found


def _addresses(files: Iterable[KeyedFile]) -> tuple[str, ...]:
    return tuple(file.address for file in files)


def _horizon(task: BuildTask, view: SequenceView, staged: Staged) -> datetime | None:
    """`horizon_days` before the newest row of the slowest kind, or before the cut; never earlier than it was.

    The rows' own time decides, not the clock: otherwise history that is still being loaded would all be late.
    """
    newest = dict(staged.newest)
    if task.mode is BuildMode.RESOLVE:
        rows, _ = task.base.tables(view)
        with duckdb_reader.connect({"stored": rows}) as con:
            for kind, ts in con.execute("SELECT kind, max(ts) FROM stored GROUP BY kind").fetchall():
                newest[kind] = max(ts, newest.get(kind, ts))
    if not newest or task.cut_at is None:
        return task.base.horizon
    slowest = min(at_micros(min(newest.values())), task.cut_at)
    horizon = slowest - timedelta(days=settings().horizon_days)
    return horizon if task.base.horizon is None else max(horizon, task.base.horizon)


def new_versions(plan: Plan, done: Sequence[Done], committing: Committing) -> NewVersion:
    """Make the files of the units part of the view's tables, one commit each."""
    task, view = plan.task, plan.task.view
    bases = task.base.versions or (None,) * len(view.tables)
    versions = list[int]()
    for number, (table, base) in enumerate(zip(view.tables, bases, strict=True)):
        written = [file for unit in done for file in unit.files.get(table, ())]
        if task.mode is BuildMode.FULL or base is None:
            versions.append(batch_tables.overwrite(table, written, committing))
            continue
        touched = [unit for unit, made in zip(plan.units, done, strict=True) if unit.built and not made.is_untouched]
        removed = {address.removeprefix(f"{tables.path(table)}/") for unit in touched for address in unit.built[number]}
        versions.append(batch_tables.swap(table, removed, written, base, committing))
    results = versions[1] if len(versions) > 1 else None
    seconds = sum(unit.seconds for unit in done) + plan.staged_seconds
    return NewVersion(Source(versions[0], results, task.cut, plan.horizon), seconds)
