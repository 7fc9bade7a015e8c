"""What was said afterwards of single records: entries of the log that change what earlier records mean.

somebody's decision -> rows of kind `revision` in master.log -> Revisions -> `decode` applies those in force.

A revision is about one record, by its place, or about a fact and whatever repeats it, by its identity. Of those about
the same one the newest counts, but nothing that is said after an erasure counts beside it. Raw bytes never change: a
revision holds what is to be read in their place.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

import pyarrow as pa

from spark_jobs.contracts import row_types


class Action(StrEnum):
    """What becomes of the record. The codes are data and never change meaning."""

    READMIT = "readmit"  # a quarantined record is read as another one
    DISCARD = "discard"  # a quarantined record stays there, whatever schema comes
    RETRACT = "retract"  # a fact, and whatever repeats it, does not count
    SUPERSEDE = "supersede"  # a fact, and whatever repeats it, is read as another one of the same event id
    RESTORE = "restore"  # what was said of a fact before is taken back
    ERASE = "erase"  # a record about somebody who is to be forgotten; in time its bytes leave the log


OF_QUARANTINE = frozenset({Action.READMIT, Action.DISCARD})


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
