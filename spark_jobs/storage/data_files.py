"""Data files of a Delta table: written where the rows are made, part of the table only by a later commit.

rows -> FileWriter -> a Parquet file that no version names -> Written -> commit -> a version. A file that is never
committed is not seen by any reader, and `vacuum` removes it in time. `files_within`: the files worth reading.
"""

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import reduce
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import FileSystem

FIELDS = [("root", pa.string()), ("path", pa.string()), ("size", pa.int64()), ("stats", pa.string())]
WRITTEN = pa.struct([*FIELDS, ("partition", pa.string()), ("value", pa.string())])

Bounds = Mapping[str, Sequence[tuple[object, object]]]
"""Column -> the ranges of values that matter, both ends included; None: without an end."""

WITH_STATISTICS = ("lsn", "kind", "view", "day", "occurred_at")
"""What readers of the log, the facts and the partials look for."""

ROW_GROUP = 20_000
"""Rows with their own bounds where rows are in the order of their key: a look for one key skips most of them."""

Committing = Callable[[DeltaTable], AbstractContextManager[CommitProperties]]
"""Whether and how a writer may commit to a table that is up to date: see `fencing`."""

LONGEST = 256
"""The characters of a text bound; a longer least value is cut there, a longer greatest value is left out. The name of a
view's column is shorter: files of one kind of row are known by it."""


@dataclass(frozen=True)
class Written:
    """A data file. `path` is relative to `root`, the table's; `stats` is Delta's JSON.

    partition, value: the column by which the table is partitioned, and its value here.
    """

    root: str
    path: str
    size: int
    stats: str
    partition: str | None = None
    value: str | None = None

    @property
    def address(self) -> str:
        return f"{self.root}/{self.path}"


class FileWriter(AbstractContextManager["FileWriter"]):
    """One file of a table, made at the first rows. `root`: where the table is; `partition`: its column and value.

    with_statistics: columns whose bounds readers look for; each a number, a text, an instant or a day. row_group: rows
    of a row group at most; the default is pyarrow's.
    """

    def __init__(
        self,
        root: str,
        partition: tuple[str, object] | None = None,
        with_statistics: Sequence[str] = WITH_STATISTICS,
        row_group: int | None = None,
    ) -> None:
        self._fs, self._base = FileSystem.from_uri(root)
        self._root, self._partition, self._row_group = root, partition, row_group
        folder = f"{partition[0]}={partition[1]}/" if partition else ""
        self._path = f"{folder}part-{uuid.uuid4()}.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._bounds = _Bounds(with_statistics)

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def add(self, rows: pa.Table) -> None:
        """Append rows, all of one schema, which may have the partition's column."""
        if not rows.num_rows:
            return
        if self._partition and self._partition[0] in rows.column_names:
            rows = rows.drop_columns([self._partition[0]])
        at = f"{self._base}/{self._path}"
        if self._writer is None:
            self._fs.create_dir(at.rpartition("/")[0], recursive=True)
            self._writer = pq.ParquetWriter(at, rows.schema, filesystem=self._fs)
        self._writer.write_table(rows, self._row_group)
        self._bounds.add(rows)

    def written(self) -> list[Written]:
        """Close the file; empty where there were no rows."""
        if self._writer is None:
            return []
        self._writer.close()
        size = self._fs.get_file_info(f"{self._base}/{self._path}").size
        column, value = self._partition or (None, None)
        return [
            Written(self._root, self._path, size, self._bounds.stats(), column, None if value is None else str(value))
        ]


class _Bounds:
    """Number of rows, and the least and greatest values of the columns."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns, self._rows = columns, 0
        self._least: dict[str, Any] = {}
        self._greatest: dict[str, Any] = {}
        self._nulls: dict[str, int] = {}

    def add(self, rows: pa.Table) -> None:
        self._rows += rows.num_rows
        for name in self._columns:
            if name not in rows.column_names:
                continue
            bounds = pc.min_max(rows[name]).as_py()
            self._nulls[name] = self._nulls.get(name, 0) + rows[name].null_count
            if bounds["min"] is not None:
                self._least[name] = min(bounds["min"], self._least.get(name, bounds["min"]))
                self._greatest[name] = max(bounds["max"], self._greatest.get(name, bounds["max"]))

    def stats(self) -> str:
        return json.dumps(
            {
                "numRecords": self._rows,
                "minValues": {name: _written(value) for name, value in self._least.items()},
                "maxValues": {
                    name: _written(value, up=True) for name, value in self._greatest.items() if not _is_long(value)
                },
                "nullCount": self._nulls,
            }
        )


def _written(value: Any, up: bool = False) -> Any:
    """A bound as Delta's statistics have it: a time in milliseconds, rounded away from the rows."""
    if _is_long(value):
        return value[:LONGEST]
    if isinstance(value, datetime):
        at = value + timedelta(microseconds=999) if up else value
        return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
    return value.isoformat() if isinstance(value, date) else value


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > LONGEST


def commit(root: str, files: Iterable[Written], mode: Literal["append", "overwrite"], committing: Committing) -> None:
    """Make the files part of the table at `root`, or its only ones, in one version."""
    _commit(DeltaTable(root), _actions(files, is_new=True), mode, committing)


def swap(
    read: DeltaTable,
    removed: Collection[str],
    files: Iterable[Written],
    committing: Committing,
    is_new: bool = True,
) -> None:
    """Put `files` in the place of the files `removed` (paths of add actions) of `read`, in one version.

    is_new: whether rows change; False for the same rows in other files.
    """
    now = int(time.time() * 1000)
    actions = [*(RemoveAction(path, is_new, now) for path in removed), *_actions(files, is_new)]
    _commit(read, actions, "append", committing)


def commit_beside(
    files: Iterable[Written],
    rows: Iterable[pa.Table],
    root: str,
    partition: tuple[str, object],
    committing: Committing,
    loaded: DeltaTable | None = None,
) -> None:
    """One version with the files, and with the `rows` in a file of their own, which has the columns that they have.

    loaded: the table, up to date, for whoever has it already.
    """
    with FileWriter(root, partition) as last:
        last.add(pa.concat_tables(rows, promote_options="default"))
        _commit(loaded or DeltaTable(root), _actions([*files, *last.written()], is_new=True), "append", committing)


def _commit(
    table: DeltaTable,
    actions: list[AddAction | RemoveAction],
    mode: Literal["append", "overwrite"],
    committing: Committing,
) -> None:
    with committing(table) as properties:
        columns = table.metadata().partition_columns
        table.create_write_transaction(actions, mode, table.schema(), columns, commit_properties=properties)


def _actions(files: Iterable[Written], is_new: bool) -> list[AddAction | RemoveAction]:
    now = int(time.time() * 1000)
    return [
        AddAction(f.path, f.size, {f.partition: f.value} if f.partition else {}, now, is_new, f.stats) for f in files
    ]


def discard(files: Iterable[Written]) -> None:
    """Delete files that are not to be committed."""
    for file in files:
        fs, base = FileSystem.from_uri(file.root)
        fs.delete_file(f"{base}/{file.path}")


def files_within(table: DeltaTable, bounds: Bounds) -> pa.Table:
    """The flat add actions of the files that can hold rows in the bounds; a file without statistics can."""
    return those_within(pa.table(table.get_add_actions(flatten=True)), bounds)


def those_within(files: pa.Table, bounds: Bounds) -> pa.Table:
    """The same of add actions that are read already."""
    for column, ranges in bounds.items():
        if f"min.{column}" in files.column_names:
            reaches = (_reaches(files, column, *one) for one in ranges)
            files = files.filter(reduce(pc.or_, reaches, pa.chunked_array([[False] * files.num_rows], pa.bool_())))
    return files


def _reaches(files: pa.Table, column: str, least: object, greatest: object) -> pa.ChunkedArray:
    """Whether each file may have a value of the column in the range."""
    within = pc.is_valid(files["path"])
    if greatest is not None:
        within = pc.and_(within, pc.fill_null(pc.less_equal(files[f"min.{column}"], greatest), True))
    if least is not None:
        within = pc.and_(within, pc.fill_null(pc.greater_equal(files[f"max.{column}"], least), True))
    return within
