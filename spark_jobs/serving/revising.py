"""Find what somebody wants to have read otherwise, and try what would come of it, before it is asked for.

quarantined records, a rule -> readmissions, and why the others are refused; an event's type and id -> the fact, its
record -> a retraction, or another content. A trial reads by the same code, as if the log had the revision already.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Action, Content, Place, Revision
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode import identity
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.engine.decode.revised import read_as
from spark_jobs.engine.dedupe import WIDTH
from spark_jobs.serving.quarantine import Rule
from spark_jobs.storage import duckdb_reader, log_reader, tables

NEXT = 0
"""In the place of an lsn: the speed application gives it when it lands the revision."""


class NothingToRevise(ValueError):
    """There is no such fact, or what should be read in its place is none. The text says which."""


@dataclass(frozen=True)
class Said:
    """Whose word a revision is, and why."""

    by: str
    reason: str

    def of(self, action: Action, place: Place, **about: Any) -> Revision:
        return Revision(NEXT, action, place, self.reason, self.by, datetime.now(UTC), **about)


@dataclass(frozen=True)
class Fact:
    """A fact as it counts now, or did before somebody took it back; `record`: its columns of RECORD."""

    place: Place
    event_type: str
    event_id: str
    identity: bytes
    record: Mapping[str, Any]

    def revision(self, said: Said, action: Action, content: Content | None = None) -> Revision:
        about = {"event_type": self.event_type, "event_id": self.event_id, "identity": self.identity}
        return said.of(action, self.place, content=content, **about)


def readmissions(
    rejects: pa.Table, rule: Rule, said: Said, history: SchemaHistory, head: int
) -> tuple[list[Revision], Counter[str]]:
    """The revisions of those records that are facts by the rule, and how many of the others are refused for what."""
    records, contents, refused = rejects.select(row_types.RECORD.names), dict[int, Content](), Counter[str]()
    for row, record in enumerate(records.to_pylist()):
        if (content := rule.content(record)) is None:
            refused["the rule changes fields, and this is no JSON object"] += 1
        else:
            contents[row] = content
    read = read_as(records, contents, history.at(head))
    refused.update(read.rejects["reason"].to_pylist())
    facts = {place for rows in read.facts.values() for place in places_of(rows)}
    places = enumerate(places_of(records))
    return [said.of(Action.READMIT, at, content=contents[row]) for row, at in places if at in facts], refused


def find(event_type: str, event_id: str, history: SchemaHistory, decoded: int, head: int) -> Fact:
    """The first fact of an event id. Raises NothingToRevise.

    decoded: up to it facts are stored; past it the log is read. What was taken back is found by what was said of it.
    """
    named = _identity(event_type, event_id)
    said = history.revisions.at(head).by_identity.get(named)
    places = [said.place] if said is not None else [*_stored(event_type, named, decoded)]
    places = places or [*_landed(event_type, named, history, decoded, head)]
    if not places:
        raise NothingToRevise(f"no {event_type} up to lsn {head} has the event id {event_id}")
    place = min(places)
    at = (ds.field("partition") == place.partition) & (ds.field("offset") == place.offset)
    [record] = log_reader.records(at & (ds.field("topic") == place.topic), [(place.lsn, place.lsn)]).to_pylist()
    return Fact(place, event_type, event_id, named, record)


def _identity(event_type: str, event_id: str) -> bytes:
    [named] = identity.of(event_type, pa.table({"event_id": [event_id]})).to_pylist()
    return bytes(named)


def _stored(event_type: str, named: bytes, decoded: int) -> Iterator[Place]:
    if duckdb_reader.exists(table := tables.facts(event_type)):
        of = (ds.field("identity") == named) & (ds.field("lsn") <= decoded)
        yield from places_of(duckdb_reader.dataset(table).to_table([*dict(row_types.COORDINATES)], filter=of))


def _landed(event_type: str, named: bytes, history: SchemaHistory, above: int, upto: int) -> Iterator[Place]:
    topic = project_contracts().of(event_type).topic
    for records in log_reader.portions(ds.field("topic") == topic, [(above + 1, upto)] if upto > above else []):
        facts = decode_logged(records, history, upto).facts.get(event_type)
        if facts is not None:
            yield from places_of(facts.filter(pc.equal(facts["identity"], pa.scalar(named, pa.binary(WIDTH)))))


def superseding(fact: Fact, value: bytes, said: Said, history: SchemaHistory, head: int) -> Revision:
    """The revision that has the value read in the fact's place, by its schema of today. Raises NothingToRevise."""
    of = project_contracts().of(fact.event_type)
    revision = fact.revision(said, Action.SUPERSEDE, Content(of.topic, fact.record["key"], value))
    record = pa.Table.from_pylist([dict(fact.record)], row_types.RECORD)
    found = decode_logged(record, history.revised([replace(revision, lsn=head + 1)]), head + 1)
    for reject in found.rejects.to_pylist():
        raise NothingToRevise(f"no schema accepts it: {reject['reason']}, {reject['detail']}")
    [(event_type, rows)] = record_outcomes.countable(found.facts).items()
    [event_id] = rows["event_id"].to_pylist()
    if (event_type, event_id) != (fact.event_type, fact.event_id):  # whatever repeats the old one would count as well
        raise NothingToRevise(f"it is {event_type} {event_id}, and is to supersede {fact.event_type} {fact.event_id}")
    return revision
