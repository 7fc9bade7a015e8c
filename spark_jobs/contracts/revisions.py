"""What was said afterwards of single records: entries of the log that change what earlier records mean.

somebody's decision -> rows of kind `revision` in master.log -> Revisions -> `decode` applies those in force.

A revision is about one record, by its place, or about a fact and whatever repeats it, by its identity. Of those about
the same one the newest counts, but nothing that is said after an erasure counts beside it. Raw bytes never change: a
revision holds what is to be read in their place.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

import pyarrow as pa

from spark_jobs.contracts import row_types

ABOUT = "revision."
"""Begins the names of those headers of a row that are the revision's own; the others are the record's to be read."""


class Action(StrEnum):
    """What becomes of the record. The codes are data and never change meaning."""

    READMIT = "readmit"  # a quarantined record is read as another one
    DISCARD = "discard"  # a quarantined record stays there, whatever schema comes
    RETRACT = "retract"  # a fact, and whatever repeats it, does not count
    SUPERSEDE = "supersede"  # a fact, and whatever repeats it, is read as another one of the same event id
    RESTORE = "restore"  # what was said of a fact before is taken back
    ERASE = "erase"  # a record about somebody who is to be forgotten; in time its bytes leave the log


OF_QUARANTINE = frozenset({Action.READMIT, Action.DISCARD})
TEXTS = ("action", "of_lsn", "reason", "by", "request", "event_type", "event_id", "topic")
"""What a row says of a revision by headers, as texts."""
ERASED = "erased"
"""The action of an entry that tells what was erased, and decides nothing: the records' own rows say it."""


class Place(NamedTuple):
    """Where a record stands in the log."""

    lsn: int
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}/{self.offset} (lsn {self.lsn})"


class Content(NamedTuple):
    """What is read in the place of a record's own topic, key, value and headers."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Revision:
    """`lsn`: its own. identity, event_type and event_id: of the fact; None for a record in quarantine.

    content: of READMIT and SUPERSEDE. request: names what was asked for, so that it is landed once.
    """

    lsn: int
    action: Action
    place: Place
    reason: str
    by: str
    at: datetime
    request: str = ""
    event_type: str | None = None
    event_id: str | None = None
    identity: bytes | None = None
    content: Content | None = None


@dataclass(frozen=True)
class InForce:
    """The revisions that count from some lsn on, the newest of each."""

    by_place: Mapping[Place, Revision] = field(default_factory=dict)
    by_identity: Mapping[bytes, Revision] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.by_place or self.by_identity)

    @cached_property
    def event_types(self) -> frozenset[str]:
        """Those with facts about which something was said."""
        return frozenset(said.event_type for said in self.by_identity.values() if said.event_type is not None)

    @cached_property
    def identities(self) -> pa.Array:
        """The identities of the facts about which something was said."""
        return pa.array(self.by_identity, row_types.FACT.field("identity").type)

    @cached_property
    def lsns(self) -> pa.Array:
        """The lsns of the quarantined records about which something was said, ascending."""
        return pa.array(sorted({place.lsn for place in self.by_place}), pa.int64())

    @cached_property
    def erased(self) -> Mapping[Place, Revision]:
        """Erased records, which may still have their bytes, with what was said."""
        return {place: said for place, said in self.by_place.items() if said.action is Action.ERASE}

    @cached_property
    def erased_lsns(self) -> pa.Array:
        """The lsns of the erased records."""
        return pa.array(sorted({place.lsn for place in self.erased}), pa.int64())


@dataclass(frozen=True)
class Revisions:
    """Everything that a log says of single records. `entries`: ascending by lsn."""

    entries: tuple[Revision, ...] = ()
    _known: dict[int, InForce] = field(default_factory=dict, repr=False, compare=False)

    def __bool__(self) -> bool:
        return bool(self.entries)

    def at(self, lsn: int) -> InForce:
        """Those in force at an lsn."""
        count = self._upto(lsn)
        if (found := self._known.get(count)) is None:
            self._known.clear()  # two cuts are seldom asked for by turns, and each may have many
            found = self._known[count] = _newest(self.entries[:count])
        return found

    def within(self, above: int, upto: int) -> Sequence[Revision]:
        """The entries of (above, upto]."""
        return self.entries[self._upto(above) : self._upto(upto)]

    @cached_property
    def contents(self) -> Mapping[Place, Revision]:
        """The newest revision of each record that is read otherwise by one."""
        newest = self.at(self.entries[-1].lsn) if self.entries else InForce()
        every = {said.place: said for said in newest.by_identity.values()} | dict(newest.by_place)
        return {place: said for place, said in every.items() if said.content is not None}

    def without(self, places: Mapping[Place, object]) -> "Revisions":
        """Those about other records."""
        return Revisions(tuple(said for said in self.entries if said.place not in places))

    def _upto(self, lsn: int) -> int:
        return bisect_right(self.entries, lsn, key=lambda said: said.lsn)


def _newest(entries: Iterable[Revision]) -> InForce:
    """Who is forgotten does not come back by a readmission that was asked for before the erasure landed (I18)."""
    by_place, by_identity = dict[Place, Revision](), dict[bytes, Revision]()
    for said in entries:
        if said.identity is not None:
            by_identity[said.identity] = said
        elif said.action is Action.ERASE or not _is_erased(by_place.get(said.place)):
            by_place[said.place] = said
    return InForce(by_place, {key: said for key, said in by_identity.items() if said.action is not Action.RESTORE})


def _is_erased(said: Revision | None) -> bool:
    return said is not None and said.action is Action.ERASE


def rows(revisions: Sequence[Revision], landed_on: date) -> pa.Table:
    """Revisions as rows of the log: the place is that of the record, key and value those to be read."""
    return pa.Table.from_pylist([_row(said, landed_on) for said in revisions], schema=row_types.LOG)


def _row(said: Revision, landed_on: date) -> dict[str, Any]:
    about = {"action": said.action, "of_lsn": str(said.place.lsn), "reason": said.reason, "by": said.by}
    about["request"] = said.request
    if said.event_type is not None:
        about["event_type"] = said.event_type
    if said.event_id is not None:
        about["event_id"] = said.event_id
    if said.content is not None:
        about["topic"] = said.content.topic
    headers = [(f"{ABOUT}{name}", text.encode()) for name, text in about.items()]
    headers += [(f"{ABOUT}identity", said.identity)] if said.identity is not None else []
    sent = said.content.headers if said.content is not None else ()
    read = [(name, value) for name, value in sent if not name.startswith(ABOUT)]  # a producer says nothing of records
    _, topic, partition, offset = said.place
    return {
        **{"lsn": said.lsn, "landed_on": landed_on, "kind": row_types.REVISION_ROW, "timestamp": said.at},
        **{"topic": topic, "partition": partition, "offset": offset},
        **({"key": said.content.key, "value": said.content.value} if said.content is not None else {}),
        "headers": [{"key": name, "value": value} for name, value in (*headers, *read)],
    }


def from_rows(logged: Iterable[Mapping[str, Any]]) -> Revisions:
    """The revisions in the log's rows of that kind, in any order."""
    still = (row for row in logged if not tells_erased(row))
    return Revisions(tuple(sorted(map(_revision, still), key=lambda said: said.lsn)))


def erased_row(said: Sequence[Revision], landed_on: date) -> pa.Table:
    """What stands in the log in the place of the erasures of one lsn once the bytes are gone: which records they were,
    whose word it was, and why. `value`: their places, as an Arrow stream."""
    first, places = (
        said[0],
        pa.Table.from_pylist([one.place._asdict() for one in said], pa.schema(row_types.COORDINATES)),
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, places.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(places)
    about = {"action": ERASED, "reason": first.reason, "by": first.by, "request": first.request}
    row = {
        **{"lsn": first.lsn, "landed_on": landed_on, "kind": row_types.REVISION_ROW, "timestamp": first.at},
        "value": sink.getvalue().to_pybytes(),
        "headers": [{"key": f"{ABOUT}{name}", "value": text.encode()} for name, text in about.items()],
    }
    return pa.Table.from_pylist([row], schema=row_types.LOG)


def tells_erased(row: Mapping[str, Any]) -> bool:
    """Whether the row of that kind only tells what was erased."""
    return bool(_about(row)["action"] == ERASED.encode())


def _about(row: Mapping[str, Any]) -> dict[str, Any]:
    """What is said, by the name of its header: the first of each, as those of the record come after ours."""
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    return {name.removeprefix(ABOUT): value for name, value in reversed(headers) if name.startswith(ABOUT)}


def _revision(row: Mapping[str, Any]) -> Revision:
    headers = [(header["key"], header["value"]) for header in row["headers"] or ()]
    about = _about(row)
    text = {name: about[name].decode() for name in TEXTS if name in about}
    content = None
    if "topic" in text:
        of_record = tuple((name, value) for name, value in headers if not name.startswith(ABOUT))
        content = Content(text["topic"], row["key"], row["value"], of_record)
    return Revision(
        lsn=row["lsn"],
        action=(action := Action(text["action"])),
        place=Place(int(text["of_lsn"]), row["topic"], row["partition"], row["offset"]),
        reason=text["reason"],
        by=text["by"],
        at=row["timestamp"],
        request=text["request"],
        event_type=text.get("event_type"),
        event_id=text.get("event_id"),
        identity=None if action in OF_QUARANTINE else about.get("identity"),
        content=content,
    )
