"""The rows of `speed.partials` for questions: the newest version of the table, and of its files what was asked before.

commit of the speed application -> `follow` -> files past a cut -> rows of one view, in memory. A file never changes, so
a question reads those alone that came since the last one.
"""

import time
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSystem, FileType

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import View
from spark_jobs.query_server.kept import Kept
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.data_files import Bounds, those_within

IN_ONE = 100_000
"""Rows up to which they are copied into one piece: a scan of many small ones takes longer."""
Reached = tuple[int, datetime]
BEHIND_SECONDS = 10.0
"""How long what is known of a view that the speed layer has set aside is believed."""
OPEN_SECONDS = 60.0
"""A version that was followed no longer ago has its next ones in the log; older commits are removed after minutes."""


class SpeedRows:
    """One version of the table at a time: all views of a statement are read from it."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self._table: DeltaTable | None = None
        self._filesystem, self._base = FileSystem.from_uri(tables.path(tables.SPEED_PARTIALS))
        self.version, self._followed = -1, 0.0
        self.head, self.at = 0, datetime.min
        self._at_head = frozenset[str]()
        self._behind: dict[str, tuple[int, float, Reached]] = {}

    def follow(self) -> None:
        """Take the newest version. Raises NoTable before the first."""
        now = time.monotonic()
        if self._table is None or now - self._followed > OPEN_SECONDS:
            duckdb_reader.version(tables.SPEED_PARTIALS)
            self._table = DeltaTable(tables.path(tables.SPEED_PARTIALS))
        elif self._is_followed():
            self._table.update_incremental()
        self._followed = now
        if self._table.version() != self.version:
            self.version = self._table.version()
            self._files = pa.table(self._table.get_add_actions(flatten=True))
            self._schema = pa.schema(self._table.schema())
            self._find_head()

    def of(self, view: View, above: int, upto: int | None) -> pa.Table:
        """lsn and partials of the view, of the lsns in (above, upto] and of others that lie in the same files."""
        columns = pa.schema([("lsn", pa.int64()), *view.partial_schema])
        if view.column not in self._schema.names:
            return columns.empty_table()
        bounds: Bounds = {"view": [(view.column, view.column)], "lsn": [(above + 1, upto)]}
        paths = those_within(self._files, bounds)["path"].to_pylist()
        read = [self._kept.rows((path, view.column), partial(self._read, path, view)) for path in paths]
        rows = pa.concat_tables([columns.empty_table(), *read])
        return rows.combine_chunks() if rows.num_rows <= IN_ONE else rows

    def reached(self, view: View, above: int) -> Reached:
        """The last lsn up to which nothing of the view is missing past `above`, and when it was computed.

        That is the head, but for a view that the speed layer has set aside.
        """
        if view.column in self._at_head:
            return self.head, self.at
        past, known_at, reached = self._behind.get(view.column, (-1, 0.0, (above, self.at)))
        if past != above or time.monotonic() - known_at >= BEHIND_SECONDS:
            reached = self._before_the_hole(view.column, above)
            self._behind[view.column] = above, time.monotonic(), reached
        return reached

    def _before_the_hole(self, column: str, above: int) -> Reached:
        """By halves: the view was set aside at some lsn, and catching up goes on from there."""
        last, lacking = above, self.head
        while lacking - last > 1:
            middle = (last + lacking) // 2
            last, lacking = (middle, lacking) if column in self._computed(middle)[0] else (last, middle)
        return last, self._computed(max(last, above + 1))[1]

    def _read(self, path: str, view: View) -> pa.Table:
        there = {field.name for field in self._schema.field(view.column).type}
        columns = {
            field.name: pc.field(view.column, field.name) if field.name in there else pc.scalar(pa.scalar(None))
            for field in view.partial_schema
        }
        rows = self._rows([path], {"lsn": pc.field("lsn"), **columns}, view.column)
        return rows.cast(pa.schema([("lsn", pa.int64()), *view.partial_schema]))

    def _rows(self, paths: list[str], columns: dict[str, Any], kind: str, lsn: int | None = None) -> pa.Table:
        at = [f"{self._base}/{unquote(path)}" for path in paths]
        files = ds.dataset(at, schema=self._schema, format="parquet", filesystem=self._filesystem)
        at_lsn = pc.scalar(True) if lsn is None else pc.field("lsn") == lsn
        return files.to_table(columns, filter=(pc.field("view") == kind) & at_lsn)

    def _is_followed(self) -> bool:
        """Whether there is a commit after this version, by its name: the library lists the log to find out."""
        commit = self._filesystem.get_file_info(f"{self._base}/_delta_log/{self.version + 1:020d}.json")
        return bool(commit.type != FileType.NotFound)

    def _find_head(self) -> None:
        """The newest lsn that is computed, when, and for which views."""
        newest = pc.max(self._files["max.lsn"]).as_py() if "max.lsn" in self._files.column_names else None
        if newest is not None:
            self.head = newest
            self._at_head, self.at = self._computed(newest)

    def _computed(self, lsn: int) -> tuple[frozenset[str], datetime]:
        """Columns of the views that have partials there, and when its own pass ended."""
        bounds: Bounds = {"view": [(row_types.BATCH_ROW, row_types.BATCH_ROW)], "lsn": [(lsn, lsn)]}
        paths = those_within(self._files, bounds)["path"].to_pylist()
        columns = {"lsn": pc.field("lsn"), "at": pc.field("control", "finished_at"), "of": pc.field("control", "views")}
        rows = self._rows(paths, columns, row_types.BATCH_ROW, lsn).to_pylist() if paths else []
        views = frozenset(view for row in rows for view in row["of"])
        ends = [row["at"] for row in rows if row["at"] is not None]  # a pass that made up for some views has a row, too
        return views, min(ends, default=self.at)
