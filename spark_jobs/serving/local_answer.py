"""What a serving view answers, computed from the tables' files by DuckDB: the rule of `render`, without a JVM.

sources (+ head) -> relations of stored and speed rows -> the merged answer. For explain, agreement and verify; a test
holds it against the answer over Thrift (I20).
"""

from collections.abc import Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.engine import aggregates, chained_view, deferred_rows, sequences
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.engine.sketches import add_sketches
from spark_jobs.expressions.dialect import Dialect, listed, quote
from spark_jobs.ledger.source import Source
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables

DUCKDB = Dialect.DUCKDB


class LocalAnswers:
    """One set of sources up to one lsn. Methods give SELECTs for `con`, which has every table they name.

    now: the moment of the question, for trailing windows; None for the clock.
    """

    def __init__(self, views: Views, sources: Mapping[str, Source], head: int, now: datetime | None = None) -> None:
        self.views, self.sources, self.head, self.now = views, sources, head, now
        self.con = duckdb_reader.connect({})
        add_sketches(self.con)
        self.replaced: dict[str, str] = {}  # view id -> relation to take in the place of its speed partials
        self._named: dict[duckdb_reader.Table, tuple[str, ds.Dataset]] = {}

    def relation(self, table: duckdb_reader.Table) -> str:
        """A table of the warehouse as a relation of `con`, opened once. Raises NoTable."""
        return self._opened(table)[0]

    def _opened(self, table: duckdb_reader.Table) -> tuple[str, ds.Dataset]:
        if table not in self._named:
            name, data = f"t{len(self._named)}", duckdb_reader.dataset(table)
            self.con.register(name, data)
            self._named[table] = (name, data)
        return self._named[table]

    def stored(self, view: View) -> str | None:
        """The batch rows (aggregate: keys and partial columns) that the source reads; None where nothing is built."""
        source = self.sources[view.id]
        if source.batch_version is None:
            return None
        if isinstance(view, AggregateView):
            built = self.relation((tables.batch(view.id), source.batch_version))
            return f"SELECT {listed(view.partial_schema.names, DUCKDB)} FROM {built}"
        return f"SELECT * FROM {self.relation((tables.batch_rows(view.id), source.batch_version))}"

    def results(self, view: SequenceView) -> str | None:
        """The stored results of a sequence, with their `stretch_end`."""
        version = self.sources[view.id].results_version
        if version is None:
            return None
        return f"SELECT * FROM {self.relation((tables.batch_results(view.id), version))}"

    def speed(self, view: View, *, above: int | None = None) -> str:
        """lsn and the view's partials past the cut (or `above`) up to head; of a sequence also those held as late."""
        above = self.sources[view.id].cut if above is None else above
        columns = view.partial_schema.names
        if view.id in self.replaced:
            return f"SELECT * FROM {self.replaced[view.id]} WHERE lsn > {above:d} AND lsn <= {self.head:d}"
        name, data = self._opened(tables.SPEED_PARTIALS)
        if view.column not in data.schema.names:
            return self._nothing(view)
        there = {field.name for field in data.schema.field(view.column).type}
        fields = ", ".join(
            f"{quote(view.column, DUCKDB)}[{duckdb_reader.literal(one)}] AS {quote(one, DUCKDB)}"
            if one in there
            else f"NULL AS {quote(one, DUCKDB)}"
            for one in columns
        )
        where = f"view = {duckdb_reader.literal(view.column)} AND lsn > {above:d} AND lsn <= {self.head:d}"
        return f"SELECT lsn, {fields} FROM {name} WHERE {where}"

    def _nothing(self, view: View) -> str:
        name = f"nothing_{view.column}"
        self.con.register(name, pa.schema([("lsn", pa.int64()), *view.partial_schema]).empty_table())
        return f"SELECT * FROM {name}"

    def in_force(self, view: SequenceView) -> str:
        """The speed rows that count; the others wait for the next build."""
        source = self.sources[view.id]
        return f"({deferred_rows.counted_now(self.speed(view), DUCKDB, source.horizon, source.hot_keys)})"

    def answer(self, view: Served) -> str:
        """The rows that `serving.<view>` gives."""
        if isinstance(view, ChainedView):
            return chained_view.answered(view, DUCKDB, self.answer(self.base(view)), self.now)
        if isinstance(view, SequenceView):
            return sequences.final(view, DUCKDB, f"({self._served(view)})")
        return aggregates.final(view, DUCKDB, self._merged(view), self._lookups(view), self.now)

    def base(self, view: ChainedView) -> Served:
        """What the view is over, in the version that the sources have."""
        return chained_view.served_base(view, (one for one in self.views if one.id in self.sources))

    def stored_of(self, view: Served) -> View:
        """The view whose partials the answer is made of."""
        return self.stored_of(self.base(view)) if isinstance(view, ChainedView) else view

    def own(self, view: View) -> str:
        """What the view's own partials say: one row per stored key, before windows, ranks and lookups."""
        if isinstance(view, SequenceView):
            return self.answer(view)
        return aggregates.answered(view, DUCKDB, self._merged(view))

    def _merged(self, view: AggregateView) -> str:
        columns = listed(view.partial_schema.names, DUCKDB)
        union = f"SELECT {columns} FROM ({self.speed(view)})"
        if stored := self.stored(view):
            union = f"{stored} UNION ALL {union}"
        return f"({aggregates.merged(view, DUCKDB, f'({union})')})"

    def _lookups(self, view: AggregateView) -> dict[str, str]:
        found = {}
        for column, lookup in view.lookups.items():
            versions = [one for one in self.views if one.name == lookup.view and one.id in self.sources]
            other = max(versions, key=lambda one: one.version)
            assert isinstance(other, AggregateView)  # checked when the views were loaded
            key, value = listed(other.keys, DUCKDB), quote(lookup.column, DUCKDB)
            found[column] = f"(SELECT {key} AS looked_up, {value} AS found FROM ({self.answer(other)}))"
        return found

    def _served(self, view: SequenceView) -> str:
        fresh = self.in_force(view)
        rows, results = self.stored(view), self.results(view)
        if rows is None or results is None:
            return sequences.resolve(view, DUCKDB, fresh)
        resolved = sequences.resolve(view, DUCKDB, f"({sequences.live(view, DUCKDB, f'({rows})', fresh)})")
        return f"{sequences.kept(view, DUCKDB, f'({results})', fresh)} UNION ALL {resolved}"
