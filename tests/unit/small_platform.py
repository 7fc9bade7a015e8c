"""A platform's tables on disk without Spark or Kafka, made by the pure core: land micro-batches, build, publish.

events -> Platform.land -> master.log, speed.partials -> Platform.build -> facts.*, batch.* -> sources. Tests change
single rows of it and look whether a check says so.
"""

import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import AggregateView, View
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.chained_view import stored_of
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.dedupe import first_of_each
from spark_jobs.engine.partials import compute
from spark_jobs.ledger.source import Source
from spark_jobs.quality import recompute
from spark_jobs.registry.views import Views, project_views
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.side_inputs import SideInputs

LOG = pa.schema(
    [
        ("lsn", pa.int64()),
        ("landed_on", pa.date32()),
        ("kind", pa.string()),
        *[field for field in row_types.RECORD if field.name != "lsn"],
        ("batch", row_types.BATCH),
    ]
)
START = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
WINDOW_LSNS = 2
"""Micro-batches that the small speed layer remembers ids of."""


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
        over = tuple(view for view in loaded.chained if stored_of(view).id in views)
        self.views = Views(tuple(loaded[view_id] for view_id in views), over)
        self.offsets = dict.fromkeys(self.contracts.topics, 0)
        self.lsn = 0
        self.recent: list[set[bytes]] = []

    def land(self, events: Iterable[dict[str, Any] | tuple[str, bytes]]) -> int:
        """One micro-batch: events, or (topic, bytes) as they are. Returns its lsn."""
        self.lsn += 1
        before = dict(self.offsets)
        rows = [self.record(one) for one in events]
        records = pa.Table.from_pylist(rows, schema=row_types.RECORD)
        ranges = [
            {"topic": t, "partition": 0, "from_offset": before[t], "until_offset": self.offsets[t]} for t in before
        ]
        batch = {"epoch": 1, "ranges": ranges, "topic_ids": [], "records": len(rows), "landed_at": START}
        control = {"lsn": self.lsn, "landed_on": START.date(), "kind": row_types.BATCH_ROW, "batch": batch}
        landed = [{**row, "landed_on": START.date(), "kind": "record"} for row in rows]
        _append(tables.MASTER_LOG, pa.Table.from_pylist([*landed, control], schema=LOG))
        self._partials(records)
        return self.lsn

    def record(self, one: dict[str, Any] | tuple[str, bytes]) -> dict[str, Any]:
        topic, value = self._sent(one) if isinstance(one, dict) else one
        offset = self.offsets[topic]
        self.offsets[topic] += 1
        key = str(one[self.contracts.of(one["event_type"]).key]).encode() if isinstance(one, dict) else None
        place = {"lsn": self.lsn, "topic": topic, "partition": 0, "offset": offset}
        return {**place, "timestamp": START, "key": key, "value": value, "headers": None}

    def _sent(self, one: dict[str, Any]) -> tuple[str, bytes]:
        return self.contracts.of(one["event_type"]).topic, json.dumps(one).encode()

    def _partials(self, records: pa.Table) -> None:
        decoded = decode(records, self.contracts).facts
        lost: list[dict[str, Any]] = []
        seen: set[bytes] = set()
        for found in record_outcomes.countable(decoded).values():
            known = pa.array([one in set().union(*self.recent) for one in found["identity"].to_pylist()], pa.bool_())
            kept, repeated = first_of_each(found.filter(pc.invert(known)))
            lost += found.filter(known).to_pylist() + repeated.to_pylist()
            seen |= set(kept["identity"].to_pylist())
        self.recent = [*self.recent, seen][-WINDOW_LSNS:]
        facts = record_outcomes.settled(decoded, pa.Table.from_pylist(lost, pa.schema(row_types.COORDINATES)))
        given = SideInputs(list(self.views), 0).before(self.lsn)
        made = compute({**facts, **given}, list(self.views)).partials
        rows = [
            {"view": column, "lsn": row.pop("lsn"), "span": 1, column: row}
            for column, table in made.items()
            for row in table.to_pylist()
        ]
        place = ("topic", "partition", "offset")
        rows += [
            {
                "view": row_types.DUPLICATE_ROW,
                "lsn": self.lsn,
                "span": 1,
                "control": {name: one[name] for name in place},
            }
            for one in lost
        ]
        columns = [view.column for view in self.views]
        control = {"views": columns, "records": records.num_rows, "started_at": START, "finished_at": START}
        rows.append({"view": row_types.BATCH_ROW, "lsn": self.lsn, "span": 1, "control": control})
        _append(tables.SPEED_PARTIALS, pa.Table.from_pylist(rows, schema=self._partials_schema()))

    def _partials_schema(self) -> pa.Schema:
        fixed = [("view", pa.string()), ("lsn", pa.int64()), ("span", pa.int64()), ("control", row_types.CONTROL)]
        return pa.schema([*fixed, *((view.column, pa.struct(list(view.partial_schema))) for view in self.views)])

    def build(self, horizon: dt.datetime | None = None) -> dict[str, Source]:
        """Facts and views at the newest lsn, and the sources that publish them."""
        con = recompute.connect()
        recompute.facts(con, recompute.records(self.lsn))
        for contract in self.contracts:
            rows = con.sql(f"SELECT *, CAST(occurred_at AS DATE) AS day FROM facts_{contract.event_type}")
            _overwrite(tables.facts(contract.event_type), rows.to_arrow_table())
        _overwrite(tables.QUARANTINE, con.sql("SELECT *, 'quarantined' AS state FROM rejects").to_arrow_table())
        _overwrite(tables.DUPLICATES, con.sql("SELECT * EXCLUDE (timestamp) FROM duplicates").to_arrow_table())
        return {view.id: self._built(con, view, horizon) for view in self.views}

    def _built(self, con: Any, view: View, horizon: dt.datetime | None) -> Source:
        if isinstance(view, AggregateView):
            rows = con.sql(f"FROM {recompute.partials(con, view)}").to_arrow_table()
            return Source(_overwrite(view.tables[0], rows), None, self.lsn, None)
        rows, results = (con.sql(one).to_arrow_table() for one in recompute.stored(view))
        if horizon is not None:
            rows = rows.filter(pc.greater_equal(rows["stretch_end"], int(horizon.timestamp() * 1_000_000)))
        versions = (_overwrite(table, made) for table, made in zip(view.tables, (rows, results), strict=True))
        return Source(*versions, self.lsn, horizon)


def _append(table: str, rows: pa.Table) -> None:
    write_deltalake(tables.path(table), rows, mode="append")


def _overwrite(table: str, rows: pa.Table) -> int:
    path = Path(tables.path(table))
    write_deltalake(path, rows, mode="overwrite", schema_mode="overwrite")
    return duckdb_reader.version(table)


def change(table: str, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> int:
    """Rewrite a table with its rows edited, as nobody should; returns the new version."""
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
