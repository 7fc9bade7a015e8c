"""The records that a drill plays with: copies of the newest ones of the log, or of those of a range of lsns.

master.log -> its records in their order -> Slice: the events that count, each once, and what no schema accepts
"""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Place
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.expressions import duckdb_session
from spark_jobs.messaging.producer import Record
from spark_jobs.registry.views import project_views
from spark_jobs.speed.land import log_end
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables
from spark_jobs.storage.lsn_ranges import Range

LSNS_BACK = 64
"""How far back the first look for the newest records goes; each further one goes four times as far."""
IN_ORDER = """
    SELECT * FROM rows
    ORDER BY lsn, cume_dist() OVER (PARTITION BY lsn, topic, partition ORDER BY "offset"), topic, partition, "offset"
"""
"""A micro-batch may be longer than a slice: its last records are as large a share of each of its partitions."""


class NothingToTake(LookupError):
    """The log has no records there."""


@dataclass(frozen=True)
class Found:
    """A record of the slice. counts: a schema accepts it. has_id: sent once more, it is a duplicate."""

    record: Record
    counts: bool
    has_id: bool


@dataclass(frozen=True)
class Slice:
    """`left_out`: records of the range that repeat one of it, and alerts, which the speed layer sends again itself."""

    lsns: Range
    records: tuple[Found, ...]
    left_out: int


def taken(most: int, lsns: Range | None = None) -> Slice:
    """The last `most` records of the log, or of a range of lsns. Raises NothingToTake."""
    if not duckdb_reader.exists(tables.MASTER_LOG):
        raise NothingToTake("nothing has landed yet")
    first, last = lsns or newest(most)
    topics = [*{*project_contracts().topics} - alert_topics()]
    rows = _in_order(log_reader.records(ds.field("topic").isin(topics), [(first, last)]))
    rows = rows.slice(max(0, rows.num_rows - most))
    if not rows.num_rows:
        raise NothingToTake(f"the log has no records to take in the lsns {first} to {last}")
    records = _distinct(rows)
    landed = sum(coverage.records(first - 1, last).values())
    return Slice((rows["lsn"][0].as_py(), last), records, min(landed, most) - len(records))


def newest(most: int) -> Range:
    """The lsns of the last so many records."""
    head, back = log_end().lsn, LSNS_BACK
    while True:
        above = max(0, head - back)
        counted = coverage.records(above)
        if not above or sum(counted.values()) >= most:
            break
        back *= 4
    needed, first = most, head
    for first in sorted(counted, reverse=True):
        needed -= counted[first]
        if needed <= 0:
            break
    return max(first, 1), head


def alert_topics() -> set[str]:
    """The topics that the speed layer itself writes: a shadow platform writes its own alerts."""
    alerts = (getattr(view.declaration, "alert", None) for view in project_views())
    return {project_contracts().of(alert.of).topic for alert in alerts if alert}


def _in_order(rows: pa.Table) -> pa.Table:
    with duckdb_session.connect() as con:
        con.register("rows", rows)
        return con.sql(IN_ORDER).to_arrow_table().cast(row_types.RECORD)


def _distinct(rows: pa.Table) -> tuple[Found, ...]:
    """The rows without those that repeat another one of them."""
    decoded = decode_logged(rows, EVERY_SCHEMA)
    known: dict[Place, tuple[bytes, bool]] = {}
    for facts in record_outcomes.countable(decoded.facts).values():
        has_id = pc.is_valid(facts["event_id"]).to_pylist()
        known |= zip(places_of(facts), zip(facts["identity"].to_pylist(), has_id, strict=True), strict=True)
    found, seen = list[Found](), set[bytes]()
    for place, row in zip(places_of(rows), rows.to_pylist(), strict=True):
        identity, has_id = known.get(place, (None, False))
        if identity is None or identity not in seen:
            found.append(Found(_record(row), identity is not None, has_id))
        seen.update([identity] if identity else [])
    return tuple(found)


def _record(row: dict[str, Any]) -> Record:
    headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
    return Record(row["topic"], row["key"], row["value"], headers)
