"""A warehouse for tests: events are landed and computed by the speed layer's own steps, without Kafka.

events (dictionaries) -> records -> master.log + speed.partials, one lsn a call; then batch runs over them.
"""

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.batch.build import build
from spark_jobs.batch.decode_step import decode
from spark_jobs.batch.plan import plan
from spark_jobs.contracts import row_types, schema_history
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Revision
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Publication, Run
from spark_jobs.publication.publish import Hold, publish
from spark_jobs.query_server.answers import Answers
from spark_jobs.registry.views import Views, project_views
from spark_jobs.settings import settings
from spark_jobs.speed import catch_up, land, partials_table
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.storage import duckdb_reader, log_reader, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from tests import micro_batches

Event = Mapping[str, Any]


def event(event_type: str, number: int, **fields: Any) -> dict[str, Any]:
    """The contract's first example with an event_id made of `number`, changed by `fields`."""
    example = project_contracts().of(event_type).examples[0]
    return {**example, "event_id": f"00000000-0000-4000-8000-{number:012d}", **fields}


def unheld(*_: Any) -> list[str]:
    return []


class Lake:
    """`views`: those that are computed and built; the fewer, the faster."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.store = ledger.open()
        self.views = project_views()
        self.lines: list[str] = []
        self._offsets: dict[str, int] = {}
        self._lsn = 0
        self._window = IdWindow(3600, 1_000_000)

    def use(self, *names: str) -> "Lake":
        """Only these views, and those that they look up."""
        self.views = Views(tuple(view for view in project_views() if view.name in names))
        return self

    def begin_without(self, *names: str) -> None:
        """The log begins without these schemas (`page_viewed.v2`), as if somebody wrote them later."""
        every = schema_history.EVERY_SCHEMA.with_new(0).entries
        land.create(schema_history.SchemaHistory(tuple(one for one in every if one.name not in names)))

    def land(
        self,
        events: Iterable[Event | bytes],
        *,
        topic: str | None = None,
        views: Sequence[str] | None = None,
        version: int | None = None,
        new_schemas: bool = False,
    ) -> int:
        """Land one micro-batch and compute its partials; returns its lsn. Bytes go to `topic` as they are.

        version: what the records say of their schema. new_schemas: those that the log lacks come in force by it.
        """
        lsn, now = self._lsn + 1, dt.datetime.now(dt.UTC)
        land.create()
        partials_table.create(list(self.views))
        headers = [] if version is None else [{"key": "schema_version", "value": b"%d" % version}]
        records = self._records(events, topic, lsn, now, headers)
        control = land.control(epoch=1, ranges=[], topic_ids={}, started_at=now)
        computed = [view for view in self.views if views is None or view.name in views]
        schemas = log_reader.read_schema_history().with_new(lsn) if new_schemas else log_reader.read_schema_history()
        writer = InProcessWriter(schemas, Fence(1))
        writer.land(records, lsn, control, schemas.within(lsn - 1, lsn))
        side_inputs = SideInputs(computed, 0, schemas)
        micro_batches.compute(writer, records, lsn, computed, self._window, now, side_inputs)
        self._lsn = lsn
        return lsn

    def say(self, said: Sequence[Revision]) -> int:
        """Land revisions, as the speed application does; returns their lsn."""
        lsn, now = self._lsn + 1, dt.datetime.now(dt.UTC)
        writer = InProcessWriter(log_reader.read_schema_history(), Fence(1))
        control = land.control(epoch=1, ranges=[], topic_ids={}, started_at=now)
        nothing = row_types.RECORD.empty_table()
        writer.land(nothing, lsn, control, said=[replace(one, lsn=lsn) for one in said])
        micro_batches.compute(
            writer, nothing, lsn, list(self.views), self._window, now, SideInputs(list(self.views), 0)
        )
        self._lsn = lsn
        return lsn

    def catch_up(self) -> None:
        """Compute the partials that views lack, as the speed application does when it starts."""
        schemas = log_reader.read_schema_history()
        side_inputs = SideInputs(list(self.views), 0, schemas)
        decoded = self.store.decoded_cut()
        catch_up.catch_up(
            self.spark, list(self.views), {}, decoded, self._window, side_inputs, Fence(1), lambda *told: None
        )

    def _records(
        self,
        events: Iterable[Event | bytes],
        topic: str | None,
        lsn: int,
        now: dt.datetime,
        headers: list[dict[str, Any]],
    ) -> pa.Table:
        rows = []
        for one in events:
            to = topic or project_contracts().of(str(one["event_type"])).topic if not isinstance(one, bytes) else topic
            assert to is not None
            offset = self._offsets[to] = self._offsets.get(to, -1) + 1
            value = one if isinstance(one, bytes) else json.dumps(one).encode()
            row = {"lsn": lsn, "topic": to, "partition": 0, "offset": offset, "timestamp": now}
            rows.append(row | {"key": b"k", "value": value, "headers": headers})
        return pa.Table.from_pylist(rows, schema=row_types.RECORD)

    def plan(self, run_id: str, days: Sequence[str] = (), mode: Any = "changed") -> Run:
        columns = [view.column for view in self.views]
        return plan(self.store, columns, run_id, [dt.date.fromisoformat(day) for day in days], mode)

    def build(self, run_id: str) -> None:
        decode(self.spark, self.store, self.store.active_run(run_id), self.lines.append)
        build(self.spark, self.store, self.views, run_id, self.lines.append)

    def publish(self, run_id: str, hold: Hold = unheld) -> Publication | None:
        """By default without a look at what Spark would serve: that has tests of its own, and takes as long."""
        return publish(self.rows, self.views, self.store, run_id, hold)

    def run(self, run_id: str, days: Sequence[str] = (), mode: Any = "changed") -> Publication | None:
        """plan, build, a passed audit, publish."""
        self.plan(run_id, days, mode)
        self.build(run_id)
        self.store.record_audit(run_id, passed=True)
        return self.publish(run_id)

    def served(self, name: str, schema: str = "serving") -> list[tuple[Any, ...]]:
        """The sorted rows of a serving view, by the read server."""
        return self.ask(f"SELECT * FROM {name}", schema)

    def ask(self, sql: str, schema: str = "serving") -> list[tuple[Any, ...]]:
        """The sorted rows of a query over serving views, by the read server; Spark takes a second to answer one."""
        rows = Answers(self.views, self.store, settings()).ask(sql, schema).rows
        return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)

    def stored(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The sorted rows that a table's files have; Spark takes a second to read the same."""
        found = duckdb_reader.dataset(table).to_table([*columns] or None).to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    def lose(self, table: str, which: str) -> None:
        """Delete rows, as nobody should; in Spark it takes seconds."""
        DeltaTable(tables.path(table)).delete(which)

    def spoil(self, table: str, which: str = "true", **values: str) -> None:
        """Set columns to SQL values."""
        DeltaTable(tables.path(table)).update(values, predicate=which)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The sorted rows of a query in Spark."""
        return sorted((tuple(row) for row in self.spark.sql(sql).collect()), key=repr)
