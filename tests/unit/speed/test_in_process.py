"""The short way of a micro-batch, without Spark."""

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.registry.views import project_views
from spark_jobs.speed import land, partials_table
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from tests import micro_batches

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
EVENTS = 20
TYPES = [one for one in project_contracts() if not one.nested and not one.is_outcome]  # of those the place says the id
REPEATED = 5


def test_duplicates_and_rejects_of_all_event_types_in_one_micro_batch(platform_home: Path) -> None:
    """Their rows come in many pieces, cut at different places, and must reach the table as one."""
    views, writer = list(project_views()), _writer()
    events = records()
    writer.land(events, 1, land.control(1, [], {}, NOW))
    side_inputs = SideInputs(views, 0)
    outcome = micro_batches.compute(writer, events, 1, views, IdWindow(3600, 1000), NOW, side_inputs)
    types = len(TYPES)
    assert outcome.counts(1) == {"facts": EVENTS * types, "rejects": types, "duplicates": REPEATED * types}
    stored = duckdb_reader.dataset(tables.SPEED_PARTIALS).to_table(["view"])["view"].to_pylist()
    assert stored.count(row_types.DUPLICATE_ROW) == REPEATED * types
    assert stored.count(row_types.REJECT_ROW) == types


def _writer() -> InProcessWriter:
    land.create()
    partials_table.create(list(project_views()))
    return InProcessWriter(EVERY_SCHEMA, Fence(1))


def records() -> pa.Table:
    """For each event type EVENTS good records, REPEATED of them twice, and one that is no JSON."""
    rows = []
    for contract in TYPES:
        ids = [*range(EVENTS), *range(REPEATED)]
        good = [{**contract.examples[0], "event_id": f"00000000-0000-4000-8000-{number:012d}"} for number in ids]
        values = [*(json.dumps(one).encode() for one in good), b"{"]
        place = {"lsn": 1, "topic": contract.topic, "timestamp": NOW, "key": b"k", "headers": []}
        rows += [{**place, "partition": n % 3, "offset": n, "value": value} for n, value in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)
