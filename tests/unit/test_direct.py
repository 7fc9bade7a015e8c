"""The short way of a micro-batch, without Spark."""

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa

from spark_jobs import contracts, registry, tables, warehouse
from spark_jobs.dedupe import Window
from spark_jobs.speed import hot, land
from spark_jobs.speed.direct import DirectWriter
from spark_jobs.speed.given import Given

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
EVENTS = 20
TYPES = [one for one in contracts.load() if not one.nested and not one.noted]  # of those the place says the id
REPEATED = 5


def test_duplicates_and_rejects_of_all_event_types_in_one_micro_batch(platform_home: Path) -> None:
    """Their rows come in many pieces, cut at different places, and must reach the table as one."""
    views, writer = list(registry.views()), _writer()
    events = records()
    writer.land(events, 1, land.control(1, [], {}, NOW, events.num_rows))
    outcome = writer.write_new(events, 1, views, Window(3600, 1000), NOW)
    types = len(TYPES)
    assert outcome.counts(1) == {"facts": EVENTS * types, "rejects": types, "duplicates": REPEATED * types}
    stored = warehouse.dataset(tables.SPEED_PARTIALS).to_table(["view"])["view"].to_pylist()
    assert stored.count(tables.DUPLICATE_ROW) == REPEATED * types
    assert stored.count(tables.REJECT_ROW) == types


def _writer() -> DirectWriter:
    land.create()
    hot.create(list(registry.views()))
    return DirectWriter(Given(list(registry.views()), 0))


def records() -> pa.Table:
    """Of each event type EVENTS good ones, REPEATED of them twice, and one that is no JSON."""
    rows = []
    for contract in TYPES:
        ids = [*range(EVENTS), *range(REPEATED)]
        good = [{**contract.examples[0], "event_id": f"00000000-0000-4000-8000-{number:012d}"} for number in ids]
        values = [*(json.dumps(one).encode() for one in good), b"{"]
        place = {"lsn": 1, "topic": contract.topic, "timestamp": NOW, "key": b"k", "headers": []}
        rows += [{**place, "partition": n % 3, "offset": n, "value": value} for n, value in enumerate(values)]
    return pa.Table.from_pylist(rows, schema=tables.RECORD)
