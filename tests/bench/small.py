"""SMALL: what a micro-batch of 2,000 records costs in the driver, step by step, without Spark and Kafka.

the town's records -> the speed layer's own steps, on tables of a folder of its own -> CPU and wall milliseconds, the
medians.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.registry.views import project_views
from spark_jobs.sample.generate import Plan, blocks
from spark_jobs.speed import land, partials_table
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.speed.partials_step import process
from spark_jobs.speed.pass_rows import views_over
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from tests.bench.own_home import own_home

RECORDS, WARMING, MEASURED = 2_000, 5, 20
NOW = datetime(2026, 3, 1, tzinfo=UTC)
NO_DUPLICATES = pa.schema(row_types.COORDINATES).empty_table()


def small(say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row per step."""
    with own_home("small"):
        views = list(project_views())
        land.create()
        partials_table.create(views)
        writer, window, side = InProcessWriter(EVERY_SCHEMA, Fence(1)), IdWindow(3600, 1_000_000), SideInputs(views, 0)
        clock = _Clock()
        for lsn, records in enumerate(_micro_batches(), 1):
            clock.begins()
            writer.land(records, lsn, land.control(1, [], {}, NOW))
            clock.lap("land")
            batch = writer.decode(records, lsn)
            clock.lap("decode")
            passed = views_over(batch.decoded.facts, views, NO_DUPLICATES, side.before(lsn))
            clock.lap("queries of the views")
            process(batch, {lsn: len(records)}, views, window, side, NOW)
            clock.lap("verdict, queries of the views, commit")
            assert not passed.failed, passed.failed
            if lsn == WARMING:
                clock.forget()
        say(f"{MEASURED} micro-batches of {RECORDS:,} records after {WARMING}, {len(views)} views")
        return clock.rows()


def _micro_batches() -> Iterator[pa.Table]:
    """Records of the town, all of its types in each."""
    contracts, offset = project_contracts(), 0
    for lsn in range(1, WARMING + MEASURED + 1):
        plan = Plan(lsn, int(NOW.timestamp() * 1000), 2_000.0, late_share=0.02, malformed_share=0.01)
        rows = []
        for block in blocks(plan, contracts, RECORDS):
            place = {"lsn": lsn, "topic": contracts.of(block.topic).topic, "partition": 0, "timestamp": NOW}
            for key, value in zip(block.keys, block.values, strict=True):
                rows.append({**place, "offset": offset, "key": key, "value": value, "headers": None})
                offset += 1
        yield pa.Table.from_pylist(rows, row_types.RECORD)


class _Clock:
    """Wall and CPU milliseconds by the names of laps."""

    def __init__(self) -> None:
        self._took: dict[str, list[tuple[float, float]]] = {}

    def begins(self) -> None:
        self._at = (time.perf_counter(), time.process_time())

    def lap(self, name: str) -> None:
        now = (time.perf_counter(), time.process_time())
        self._took.setdefault(name, []).append(((now[0] - self._at[0]) * 1000, (now[1] - self._at[1]) * 1000))
        self._at = (time.perf_counter(), time.process_time())

    def forget(self) -> None:
        self._took.clear()

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"step": name, "wall ms": statistics.median(wall), "CPU ms": statistics.median(cpu)}
            for name, laps in self._took.items()
            for wall, cpu in [zip(*laps, strict=True)]
        ]
