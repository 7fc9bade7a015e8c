"""Compute what a serving view answers from the tables' files, by DuckDB: the serving plan without a JVM.

sources (+ head) -> relations of stored and speed rows -> the merged answer. For explain, agreement and verify; a test
compares it with the answer over Thrift (I20).
"""

from collections.abc import Mapping
from copy import copy
from datetime import datetime

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import sequences, serving_plan
from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.dialect import Dialect, quote, quote_text
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.data_files import Bounds

DUCKDB = Dialect.DUCKDB


class LocalAnswers:
    """One set of sources up to one lsn, as relations of the DuckDB connection `con`.

    now: the moment of the question, for trailing windows; None for the clock.
    """

    dialect = DUCKDB

    def __init__(self, views: Views, sources: Mapping[str, Source], head: int, now: datetime | None = None) -> None:
        self.sources, self.head, self.now = sources, head, now
        self.in_force = [view for view in views if view.id in sources]
        self.con = duckdb_reader.connect({}, sketches=True)
        self._opened: dict[duckdb_reader.Table, tuple[str, ds.Dataset]] = {}
        self._added: dict[str, tuple[str, ds.Dataset]] = {}
        self._partials: dict[str, str] = {}
        self._keys: dict[str, str] = {}
        self._bounds: dict[str, ds.Expression] = {}

    def with_partials(self, view: View, relation: str) -> "LocalAnswers":
        """The same sources, but the view's speed partials are those of a relation of `con`."""
        other = copy(self)
        other._partials = {view.id: relation}
        return other

    def with_keys(self, view: View, relation: str, bounds: ds.Expression | None = None) -> "LocalAnswers":
        """The same sources, but of the view only the stored keys in a relation of `con`.

        bounds: what holds for all of these keys; row groups of files in which it never does are not read.
        """
        other = copy(self)
        other._keys = {view.id: relation}
        other._bounds = {} if bounds is None else {view.id: bounds}
        return other

    def _narrowed(self, view: View, rows: str) -> str:
        if view.id not in self._keys:
            return rows
        same = " AND ".join(f"r.{q} IS NOT DISTINCT FROM k.{q}" for q in (quote(n, DUCKDB) for n in view.stored_keys))
        return f"(SELECT r.* FROM {rows} r SEMI JOIN {self._keys[view.id]} k ON {same or 'true'})"

    def relation(self, table: duckdb_reader.Table) -> str:
        """A table of the warehouse as a relation of `con`, opened once. Raises NoTable."""
        return self._open(table)[0]

    def _open(self, table: duckdb_reader.Table) -> tuple[str, ds.Dataset]:
        if table not in self._opened:
            name, rows = f"t{len(self._opened)}", duckdb_reader.dataset(table)
            self.con.register(name, rows)
            self._opened[table] = name, rows
        return self._opened[table]

    def _files_of(self, view: View) -> tuple[str, ds.Dataset]:
        """The files of speed.partials that can hold the view's rows past the cut, as a relation of `con`."""
        if view.id not in self._added:
            bounds: Bounds = {"view": [(view.column, view.column)], "lsn": [(self.sources[view.id].cut + 1, self.head)]}
            name, files = f"added_{view.id}", duckdb_reader.within(tables.SPEED_PARTIALS, bounds)
            self.con.register(name, files)
            self._added[view.id] = (name, files)
        return self._added[view.id]

    def built(self, view: View) -> list[str]:
        """What the source reads of the view's tables."""
        return [self._narrowed(view, self._bounded(view, table)) for table in self.sources[view.id].tables(view)]

    def _bounded(self, view: View, table: duckdb_reader.Table) -> str:
        name, rows = self._open(table)
        if view.id not in self._bounds:
            return name
        self.con.register(f"{name}_bounded", rows.filter(self._bounds[view.id]))
        return f"{name}_bounded"

    def speed(self, view: View) -> str:
        """lsn and the view's partials past the cut up to head; for a sequence deferred rows too."""
        within = f"lsn > {self.sources[view.id].cut:d} AND lsn <= {self.head:d}"
        if view.id in self._partials:
            return f"SELECT * FROM {self._partials[view.id]} WHERE {within}"
        name, data = self._files_of(view)
        if view.column not in data.schema.names:
            nothing = f"nothing_{view.column}"
            self.con.register(nothing, pa.schema([("lsn", pa.int64()), *view.partial_schema]).empty_table())
            return f"SELECT * FROM {nothing}"
        there = {field.name for field in data.schema.field(view.column).type}
        fields = ", ".join(
            f"{quote(view.column, DUCKDB)}[{quote_text(column, DUCKDB)}] AS {quote(column, DUCKDB)}"
            if column in there
            else f"NULL AS {quote(column, DUCKDB)}"
            for column in view.partial_schema.names
        )
        return f"SELECT lsn, {fields} FROM {name} WHERE view = {quote_text(view.column, DUCKDB)} AND {within}"

    def added(self, view: View) -> str:
        """The speed rows that count; the others are deferred to the next build."""
        source = self.sources[view.id]
        counted = sequences.counted_now(self.speed(view), DUCKDB, source.horizon, source.hot_keys)
        return f"FROM {self._narrowed(view, f'({counted})')}" if view.id in self._keys else counted

    def answer(self, view: Served) -> str:
        """SELECT of the rows that `serving.<view>` gives."""
        return serving_plan.answer(view, self)

    def own(self, view: View) -> str:
        """SELECT of what the view's own partials say: one row per stored key, before windows, ranks and lookups."""
        return serving_plan.own_answer(view, self)
