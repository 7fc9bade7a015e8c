"""The hot tables as the speed application fills and compacts them, without Spark and Kafka: a small market."""

import datetime as dt
import threading
from collections import Counter
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.registry.views import project_views
from spark_jobs.speed import compaction, continuity, land, partials_table
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from tests import micro_batches
from tests.local_platform import Platform, market

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
DAY = 86_400
T0 = 2_860 * 7 * DAY
"""Where a week, and all shorter periods, begin."""
VIEWS = {"orders_by_day_v1", "trades_v1", "bus_latest_v1"}


class Speed:
    """The short way of the speed application over a small market, micro-batch by micro-batch."""

    def __init__(self) -> None:
        self.views = [view for view in project_views().all if view.column in VIEWS]
        self.market = Platform([])
        land.create()
        partials_table.create(self.views)
        self.writer, self.window, self.lsn = InProcessWriter(EVERY_SCHEMA, Fence(1)), IdWindow(3600, 1000), 0

    def micro_batches(self, count: int) -> None:
        for _ in range(count):
            self.lsn += 1
            self.market.lsn = self.lsn
            records = pa.Table.from_pylist([self.market.record(one) for one in market(self.lsn)], row_types.RECORD)
            taken = [continuity.Range(t, 0, 0, offset) for t, offset in self.market.offsets.items()]
            self.writer.land(records, self.lsn, land.control(1, taken, {}, NOW))
            micro_batches.compute(self.writer, records, self.lsn, self.views, self.window, NOW)


def compact(at: float = T0) -> None:
    """All that is worth it at that time."""
    while compaction.compact(threading.Lock(), Fence(1), at):
        pass


def rows(table: str) -> Counter[str]:
    return Counter(repr({k: v for k, v in row.items() if k != "span"}) for row in all_rows(table))


def all_rows(table: str) -> list[dict[str, Any]]:
    return duckdb_reader.dataset(table).to_table().to_pylist()


def added() -> pa.Table:
    return pa.table(DeltaTable(tables.path(tables.SPEED_PARTIALS)).get_add_actions(flatten=True))


def spans() -> Counter[int]:
    """Number of files per span."""
    return Counter(added()["partition.span"].to_pylist())
