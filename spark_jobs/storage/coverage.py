"""What has landed and which views have partials for it, read from the Delta tables without a JVM.

`__batch__` rows of master.log and speed.partials -> lsn sets -> how far nothing is missing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.expressions import duckdb_session
from spark_jobs.storage import tables
from spark_jobs.storage.data_files import Bounds, files_within


@dataclass(frozen=True)
class Computed:
    """Partials of one lsn: the view columns that have them, and when the micro-batch's own pass ended."""

    views: frozenset[str]
    at: datetime | None


AT_ONCE = 10_000
LAST = 2**63 - 1
Covered = Mapping[int, Computed]


def landed(above: int) -> Mapping[int, datetime]:
    """The landed lsns > `above`, each with the time when its micro-batch was landed; empty before the log exists."""
    return dict(_control_rows(tables.MASTER_LOG, "kind", "lsn, batch.landed_at::TIMESTAMPTZ", above))


def landed_between(begin: datetime, end: datetime) -> tuple[int, int] | None:
    """The first and the last lsn that landed in [begin, end); None where nothing did."""
    first = last = None
    for lsn, at in _control_rows(tables.MASTER_LOG, "kind", "lsn, batch.landed_at::TIMESTAMPTZ", 0):
        if begin <= at < end:
            first, last = first or lsn, lsn
    return (first, last) if first and last else None


def records(above: int, upto: int | None = None) -> Mapping[int, int]:
    """Number of records per landed lsn in (above, upto], in their order."""
    return dict(_control_rows(tables.MASTER_LOG, "kind", "lsn, batch.records", above, upto))


def counted(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The landed lsns from `first` to `last` in their order, each with its number of records, some at a time."""
    for above in range(first - 1, last, AT_ONCE):
        yield from records(above, min(above + AT_ONCE, last)).items()


def covered(above: int, upto: int | None = None) -> Covered:
    """Coverage of lsns in (above, upto]; an lsn has a control row per pass (catch-up of a new view adds one)."""
    computed, known_sets = dict[int, Computed](), dict[frozenset[str], frozenset[str]]()
    for lsn, views, at in _control_rows(
        tables.SPEED_PARTIALS, "view", "lsn, control.views, control.finished_at::TIMESTAMPTZ", above, upto
    ):
        known = computed.get(lsn, Computed(frozenset(), None))
        together = known.views | frozenset(views)  # one object for all lsns: the views hardly ever change
        computed[lsn] = Computed(known_sets.setdefault(together, together), known.at or at)
    return computed


def head() -> tuple[int, datetime | None]:
    """The newest lsn that has partials, and when its pass ended; 0 before the first one."""
    root = tables.path(tables.SPEED_PARTIALS)
    if not DeltaTable.is_deltatable(root):
        return 0, None
    files = pa.table(DeltaTable(root).get_add_actions(flatten=True))
    newest = pc.max(files["max.lsn"]).as_py() if "max.lsn" in files.column_names else None
    computed = covered(newest - 1).get(newest) if newest else None
    return newest or 0, computed.at if computed else None


def columns() -> frozenset[str]:
    """Columns of speed.partials: of the views that the speed layer knows, and its own."""
    if not DeltaTable.is_deltatable(tables.path(tables.SPEED_PARTIALS)):
        return frozenset()
    return frozenset(field.name for field in DeltaTable(tables.path(tables.SPEED_PARTIALS)).schema().fields)


def reach(
    above: int, lsns: Collection[int], coverage: Covered, columns: Iterable[str]
) -> tuple[int, Mapping[str, int]]:
    """How far every lsn from `above` on has landed and has partials of every view that is known there at all.

    Returns that lsn, and view column -> the first lsn that it lacks, which is the next one. A view without any coverage
    there is new: the speed application has not started with it yet. It delays no cut.
    """
    needed = {column for column in columns if any(column in computed.views for computed in coverage.values())}
    lsn = above
    while lsn + 1 in lsns and lsn + 1 in coverage and needed <= coverage[lsn + 1].views:
        lsn += 1
    held = needed - coverage[lsn + 1].views if lsn + 1 in coverage else needed if lsn + 1 in lsns else set()
    return lsn, dict.fromkeys(sorted(held), lsn + 1)


def holes(cut: int, head: int, coverage: Covered, column: str) -> list[int]:
    """Lsns in (cut, head] without partials of the view column: what a reader of that cut would miss."""
    return [n for n in range(cut + 1, head + 1) if n not in coverage or column not in coverage[n].views]


def _control_rows(
    table: str, column: str, wanted: str, above: int, upto: int | None = None
) -> Iterator[tuple[Any, ...]]:
    """`wanted` of the `__batch__` rows in (above, upto], in the order of their lsns.

    DuckDB reads those parts of the control struct alone: the ids beside them are a thousand times larger.
    """
    root = tables.path(table)
    if not DeltaTable.is_deltatable(root):
        return
    bounds: Bounds = {"lsn": [(above + 1, upto)], column: [(row_types.BATCH_ROW, row_types.BATCH_ROW)]}
    files = [f"{root}/{unquote(path)}" for path in files_within(DeltaTable(root), bounds)["path"].to_pylist()]
    if not files:
        return
    rows = f"SELECT {wanted} FROM read_parquet(?, union_by_name = true)"
    query = f"{rows} WHERE {column} = ? AND lsn > ? AND lsn <= ? ORDER BY lsn"
    with duckdb_session.connect() as connection:
        answer = connection.sql(query, params=[files, row_types.BATCH_ROW, above, upto or LAST])
        for rows in answer.to_arrow_reader(AT_ONCE):
            yield from zip(*(values.to_pylist() for values in rows.columns), strict=True)
