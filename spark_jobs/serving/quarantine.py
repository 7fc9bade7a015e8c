"""The records that no schema accepts, and what they would be if they were read otherwise.

master.quarantine (to the cut of the last decode) | rejects of the speed layer (past it), the log -> rejected records
with their state; a record, a rule -> the content to be read in its place.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.revisions import Action, Content, Place
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.engine.decode.reasons import Reason
from spark_jobs.engine.decode.rows import VERSION_HEADER
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.lsn_ranges import joined

WAITING, READMITTED, DISCARDED, ERASED = "waiting", "readmitted", "discarded", "erased"
STATES = {Action.READMIT: READMITTED, Action.DISCARD: DISCARDED, Action.ERASE: ERASED}
AT_ONCE = 100_000
"""Rejected records in memory."""


@dataclass(frozen=True)
class Which:
    """Which rejected records: all that fit. None and empty: any."""

    reasons: Sequence[str] = ()
    topics: Sequence[str] = ()
    event_types: Sequence[str] = ()
    fields: Sequence[str] = ()
    from_lsn: int | None = None
    to_lsn: int | None = None
    places: Sequence[tuple[str, int, int]] = ()

    def expression(self) -> ds.Expression:
        """The same over the columns of REJECT. A retracted fact is none: nobody asks to have it back by its place.

        Nor is what was erased.
        """
        found = ~ds.field("reason").isin([str(Reason.RETRACTED), str(Reason.ERASED)])
        named = {"reason": self.reasons, "topic": self.topics, "event_type": self.event_types, "field": self.fields}
        for name, values in named.items():
            found &= ds.field(name).isin([*values]) if values else ds.scalar(True)
        if self.from_lsn is not None:
            found &= ds.field("lsn") >= self.from_lsn
        if self.to_lsn is not None:
            found &= ds.field("lsn") <= self.to_lsn
        return found & self._at() if self.places else found

    def _at(self) -> ds.Expression:
        found = ds.scalar(False)
        for topic, partition, offset in self.places:
            found |= (
                (ds.field("topic") == topic) & (ds.field("partition") == partition) & (ds.field("offset") == offset)
            )
        return found


@dataclass(frozen=True)
class Rule:
    """How a record is to be read: as of another topic, or schema version; with other, renamed or fewer fields."""

    topic: str | None = None
    version: int | None = None
    set: Mapping[str, Any] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()

    def content(self, record: Mapping[str, Any]) -> Content | None:
        """What is read in the record's place; None where the rule needs a JSON object and there is none."""
        value = record["value"]
        if self.set or self.rename or self.drop:
            try:
                event = json.loads(value)
            except (TypeError, ValueError):
                return None
            if not isinstance(event, dict):
                return None
            kept = {self.rename.get(name, name): one for name, one in event.items() if name not in self.drop}
            value = json.dumps({**kept, **self.set}, ensure_ascii=False).encode()
        headers = [(header["key"], header["value"]) for header in record["headers"] or ()]
        if self.version is not None:
            headers = [one for one in headers if one[0] != VERSION_HEADER] + [(VERSION_HEADER, b"%d" % self.version)]
        return Content(self.topic or record["topic"], record["key"], value, tuple(headers))


def portions(which: Which, history: SchemaHistory, decoded: int, head: int) -> Iterator[pa.Table]:
    """Rejected records up to head that fit: columns of REJECT and `state`. `decoded`: the cut of the last decode."""
    where = which.expression()
    if duckdb_reader.exists(tables.QUARANTINE):
        rows = duckdb_reader.dataset(tables.QUARANTINE)
        for batch in in_portions(rows, AT_ONCE, where & (ds.field("lsn") <= decoded), row_types.REJECT.names):
            yield _stated(pa.Table.from_batches([batch]).cast(row_types.REJECT), history)
    for rejects in _since(decoded, head, history):
        yield _stated(ds.dataset(rejects).to_table(filter=where).cast(row_types.REJECT), history)


def _since(decoded: int, head: int, history: SchemaHistory) -> Iterator[pa.Table]:
    """What decode has refused past the last decode of the batch layer."""
    of = (ds.field("view") == row_types.REJECT_ROW) & ds.field("control", "view").is_null()
    within = of & (ds.field("lsn") > decoded) & (ds.field("lsn") <= head)
    if not duckdb_reader.exists(tables.SPEED_PARTIALS) or head <= decoded:
        return
    refused = duckdb_reader.dataset(tables.SPEED_PARTIALS).to_table(
        {"lsn": ds.field("lsn"), "offset": ds.field("control", "offset")}, filter=within
    )
    if not refused.num_rows:
        return
    lsns = pc.unique(refused["lsn"]).to_pylist()
    some = ds.field("lsn").isin(lsns) & ds.field("offset").isin(pc.unique(refused["offset"]))
    for records in log_reader.portions(some, joined((lsn, lsn) for lsn in lsns), AT_ONCE):
        yield decode_logged(records, history).rejects


def _stated(rejects: pa.Table, history: SchemaHistory) -> pa.Table:
    said = history.revisions.at(coverage.LAST).by_place
    states = pa.repeat(WAITING, rejects.num_rows)
    if said:
        found = (said.get(place) for place in places_of(rejects))
        states = pa.array([WAITING if one is None else STATES[one.action] for one in found], pa.string())
    return rejects.append_column("state", states)


def undecided(rejects: pa.Table) -> pa.Table:
    """Those of which something may still be said: without what an erasure names that no build has decoded yet."""
    return rejects.filter(pc.not_equal(rejects["state"], ERASED))


def summary(portions: Iterator[pa.Table], history: SchemaHistory, decoded: int, head: int) -> list[dict[str, Any]]:
    """A row for each cause: topic, event type, version, reason, field, state; how many, where, one's detail; and how
    many the schemas in force accept by now, which the next build takes out."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    names = ("topic", "event_type", "schema_version", "reason", "field", "state")
    is_newer = bool(history.within(decoded, head))  # what older schemas accept, the last build took out
    for rejects in portions:
        accepted = _facts_of(rejects.select(row_types.RECORD.names), history, head) if is_newer else frozenset[Place]()
        told = rejects.select([*names, "lsn", "detail"]).to_pylist()
        for row, place in zip(told, places_of(rejects), strict=True):
            group = groups.setdefault(tuple(row[name] for name in names), {"records": 0, "accepted_now": 0})
            group["records"] += 1
            group["accepted_now"] += row["state"] == WAITING and place in accepted
            group["first_lsn"] = min(group.get("first_lsn", row["lsn"]), row["lsn"])
            group["last_lsn"] = max(group.get("last_lsn", row["lsn"]), row["lsn"])
            group.setdefault("sample", row["detail"])
    ordered = sorted(groups.items(), key=lambda item: (-item[1]["records"], repr(item[0])))
    return [dict(zip(names, key, strict=True)) | counts for key, counts in ordered]


def _facts_of(records: pa.Table, history: SchemaHistory, head: int) -> frozenset[Place]:
    """The places of records that are facts at the head."""
    found = record_outcomes.countable(decode_logged(records, history, head).facts)
    return frozenset(place for rows in found.values() for place in places_of(rows))
