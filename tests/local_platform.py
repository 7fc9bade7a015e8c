"""A platform in one process, without Spark, Kafka or Airflow: land micro-batches, build, publish.

events -> Platform.land (the speed layer's own steps) -> master.log, speed.partials -> Platform.build -> facts.*,
batch.* -> sources. Tests change single rows of it and look whether a check says so.
"""

import copy
import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Revision
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.engine.chained_view import stored_of
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger.source import Source
from spark_jobs.quality import recompute
from spark_jobs.registry.views import Views, project_views
from spark_jobs.speed import land, partials_table
from spark_jobs.speed.continuity import Range
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from tests import micro_batches

START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
WINDOW_LSNS = 2
"""Micro-batches whose ids the speed layer remembers here."""


def event(event_type: str, at: dt.datetime = START, event_id: str | None = None, **fields: Any) -> dict[str, Any]:
    """The contract's example with other fields and an id of its own."""
    good = project_contracts().of(event_type).examples[0]
    stamp = at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"
    return {**good, "event_id": event_id or str(uuid.uuid4()), "occurred_at": stamp, **fields}


class Platform:
    """lsn by lsn; one Kafka partition per topic, offsets without gaps."""

    def __init__(self, views: Sequence[str]) -> None:
        loaded = project_views()
        self.contracts = project_contracts()
        chained = tuple(view for view in loaded.chained if stored_of(view).id in views)
        self.views = Views(tuple(loaded[view_id] for view_id in views), chained)
        self.offsets = dict.fromkeys(self.contracts.topics, 0)
        self.lsn = 0
        self.recent: list[bytes] = []

    def fork(self) -> "Platform":
        """Another one that goes on from the same lsn, in a home with a copy of the tables."""
        other = copy.copy(self)
        other.offsets, other.recent = dict(self.offsets), list(self.recent)
        return other

    def land(self, events: Iterable[dict[str, Any] | tuple[str, bytes]] = (), said: Sequence[Revision] = ()) -> int:
        """One micro-batch: events, or (topic, bytes) as they are; or what is said of older ones. Returns its lsn."""
        if not self.lsn:
            land.create()
            partials_table.create(list(self.views))
        self.lsn += 1
        before = dict(self.offsets)
        records = pa.Table.from_pylist([self.record(event) for event in events], schema=row_types.RECORD)
        ranges = [Range(topic, 0, offset, self.offsets[topic]) for topic, offset in before.items()]
        writer, views = InProcessWriter(EVERY_SCHEMA, Fence(1)), list(self.views)
        revisions = [replace(one, lsn=self.lsn) for one in said]
        writer.land(records, self.lsn, land.control(1, ranges, {}, START), said=revisions)
        side_inputs = SideInputs(views, 0)
        outcome = micro_batches.compute(writer, records, self.lsn, views, self._window(), START, side_inputs)
        self.recent = [*self.recent, outcome.verdict.ids.get(self.lsn, b"")][-WINDOW_LSNS:]
        return self.lsn

    def _window(self) -> IdWindow:
        window = IdWindow(3600, 1_000_000)
        for lsn, ids in enumerate(self.recent, self.lsn - len(self.recent)):
            window.add(lsn, ids, START)
        return window

    def record(self, one: dict[str, Any] | tuple[str, bytes]) -> dict[str, Any]:
        topic, value = self._sent(one) if isinstance(one, dict) else one
        offset = self.offsets[topic]
        self.offsets[topic] += 1
        key = str(one[self.contracts.of(one["event_type"]).key]).encode() if isinstance(one, dict) else None
        place = {"lsn": self.lsn, "topic": topic, "partition": 0, "offset": offset}
        return {**place, "timestamp": START, "key": key, "value": value, "headers": None}

    def _sent(self, one: dict[str, Any]) -> tuple[str, bytes]:
        return self.contracts.of(one["event_type"]).topic, json.dumps(one).encode()

    def build(self, horizon: dt.datetime | None = None) -> dict[str, Source]:
        """Facts and views at the newest lsn, and the sources that publish them."""
        con = recompute.facts(self.lsn, cut=self.lsn)
        for contract in self.contracts:
            rows = con.sql(f"SELECT *, CAST(occurred_at AS DATE) AS day FROM facts_{contract.event_type}")
            _overwrite(tables.facts(contract.event_type), rows.to_arrow_table())
        _overwrite(tables.QUARANTINE, con.sql("SELECT *, 'quarantined' AS state FROM rejects").to_arrow_table())
        _overwrite(tables.DUPLICATES, con.sql("SELECT * EXCLUDE (timestamp) FROM duplicates").to_arrow_table())
        rejects = {view.id: recompute.rejects(view) for view in self.views}
        selects = [f"SELECT '{view_id}' AS view, * FROM ({text})" for view_id, text in rejects.items() if text]
        if selects:
            _overwrite(tables.VIEW_REJECTS, con.sql(" UNION ALL BY NAME ".join(selects)).to_arrow_table())
        return {view.id: self._built(con, view, horizon) for view in self.views}

    def _built(self, con: Any, view: View, horizon: dt.datetime | None) -> Source:
        if isinstance(view, AggregateView):
            rows = con.sql(f"FROM {recompute.partials(con, view)}").to_arrow_table()
            return Source(_overwrite(view.tables[0], rows), None, self.lsn, None)
        rows, results = (con.sql(one).to_arrow_table() for one in recompute.stored(con, view))
        if horizon is not None:
            rows = rows.filter(pc.greater_equal(rows["stretch_end"], int(horizon.timestamp() * 1_000_000)))
        versions = (_overwrite(table, made) for table, made in zip(view.tables, (rows, results), strict=True))
        return Source(*versions, self.lsn, horizon)


def _overwrite(table: str, rows: pa.Table) -> int:
    path = Path(tables.path(table))
    write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")
    return duckdb_reader.version(table)


def change(table: str, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> int:
    """Rewrite a table with its rows edited, as nobody should; returns the new version."""
    DeltaTable(tables.path(table)).alter.set_table_properties({"delta.appendOnly": "false"}, raise_if_not_exists=False)
    found = duckdb_reader.dataset(table).to_table()
    return _overwrite(table, pa.Table.from_pylist(edit(found.to_pylist()), schema=found.schema))


def market(number: int) -> list[dict[str, Any]]:
    """One micro-batch of a small market; late by an hour at every third."""
    at = START + dt.timedelta(minutes=10 * number) - dt.timedelta(hours=number % 3)
    half = number % 2
    return [
        event("order_placed", at, colour=["red", "blue"][half], user_id=number % 4 + 1, comp_id=1001 + half),
        event("order_executed", at + dt.timedelta(seconds=number), comp_id=1001 + half),
        event("page_viewed", at, user_id=number % 3 + 1, url=f"/{number}"),
        event("sentence_posted", at, text=f"the quick fox number {number}"),
        event("bus_position_reported", at, bus_id=f"bus-{number % 2}"),
    ]
