"""What has landed and which views have partials for it, read from the Delta tables without a JVM.

`__batch__` rows of master.log and speed.partials -> lsn sets -> how far nothing is missing.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.expressions import duckdb_session
from spark_jobs.storage import tables

Landed = Mapping[int, datetime]
"""lsn -> when its micro-batch was landed."""


@dataclass(frozen=True)
class Computed:
    """Partials of one lsn: the view columns that have them, and when the micro-batch's own pass ended."""

    views: frozenset[str]
    at: datetime | None


Covered = Mapping[int, Computed]


@dataclass(frozen=True)
class Reach:
    """`lsn`: the highest with nothing missing below. `held_by`: view column -> first lsn that it lacks, at lsn + 1."""

    lsn: int
    held_by: Mapping[str, int]


def landed(above: int) -> Landed:
    """The landed lsns > `above`; empty before the log exists."""
    return dict(_control_rows(tables.MASTER_LOG, "kind", "lsn, batch.landed_at::TIMESTAMPTZ", above))


def records(above: int) -> Mapping[int, int]:
    """Number of records per landed lsn > `above`."""
    return dict(_control_rows(tables.MASTER_LOG, "kind", "lsn, batch.records", above))


def covered(above: int) -> Covered:
    """Coverage of lsns > `above`; an lsn has a control row per pass (catch-up of a new view adds one)."""
    computed: dict[int, Computed] = {}
    for lsn, views, at in _control_rows(
        tables.SPEED_PARTIALS, "view", "lsn, control.views, control.finished_at::TIMESTAMPTZ", above
    ):
        known = computed.get(lsn, Computed(frozenset(), None))
        computed[lsn] = Computed(known.views | frozenset(views), known.at or at)
    return computed


def columns() -> frozenset[str]:
    """Columns of speed.partials: of the views that the speed layer knows, and its own."""
    if not DeltaTable.is_deltatable(tables.path(tables.SPEED_PARTIALS)):
        return frozenset()
    return frozenset(field.name for field in DeltaTable(tables.path(tables.SPEED_PARTIALS)).schema().fields)


def reach(above: int, lsns: Collection[int], coverage: Covered, columns: Iterable[str]) -> Reach:
    """How far every lsn from `above` on has landed and has partials of every view that is known there at all.

    A view without any coverage there is new: the speed application has not started with it yet. It delays no cut.
    """
    needed = {column for column in columns if any(column in computed.views for computed in coverage.values())}
    lsn = above
    while lsn + 1 in lsns and lsn + 1 in coverage and needed <= coverage[lsn + 1].views:
        lsn += 1
    held = needed - coverage[lsn + 1].views if lsn + 1 in coverage else needed if lsn + 1 in lsns else set()
    return Reach(lsn, dict.fromkeys(sorted(held), lsn + 1))


def holes(cut: int, head: int, coverage: Covered, column: str) -> list[int]:
    """Lsns in (cut, head] without partials of the view column: what a reader of that cut would miss."""
    return [n for n in range(cut + 1, head + 1) if n not in coverage or column not in coverage[n].views]


def _control_rows(table: str, column: str, wanted: str, above: int) -> list[tuple[Any, ...]]:
    """`wanted` of the `__batch__` rows above an lsn.

    DuckDB reads those parts of the control struct alone: the ids beside them are a thousand times larger.
    """
    files = _files(table, column, above) if DeltaTable.is_deltatable(tables.path(table)) else []
    if not files:
        return []
    with duckdb_session.connect() as connection:
        query = (
            f"SELECT {wanted} FROM read_parquet(?, union_by_name = true) WHERE {column} = ? AND lsn > ? ORDER BY lsn"
        )
        answer = connection.sql(query, params=[files, row_types.BATCH_ROW, above]).to_arrow_table()
    return list(zip(*(values.to_pylist() for values in answer.columns), strict=True))


def _files(table: str, column: str, above: int) -> list[str]:
    """Files that can hold such rows, by their statistics; those without statistics can."""
    files = pa.table(DeltaTable(tables.path(table)).get_add_actions(flatten=True))
    newest: list[int] = _stat(files, "max.lsn", above + 1)
    least: list[str] = _stat(files, f"min.{column}", row_types.BATCH_ROW)
    greatest: list[str] = _stat(files, f"max.{column}", row_types.BATCH_ROW)
    return [
        f"{tables.path(table)}/{unquote(path)}"
        for path, lsn, low, high in zip(files["path"].to_pylist(), newest, least, greatest, strict=True)
        if lsn > above and low <= row_types.BATCH_ROW <= high
    ]


def _stat(files: pa.Table, name: str, default: Any) -> list[Any]:
    if name not in files.column_names:
        return [default] * int(files.num_rows)
    return [default if value is None else value for value in files[name].to_pylist()]
