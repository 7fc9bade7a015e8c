"""How a record is read, said a second time: for the oracle, from the log's own rows.

rows of the log that say from which lsn on a schema is in force, or what became of a record -> Times -> the event of a
record, or NoEvent
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.sample.reference_decoder import verdict
from spark_jobs.sample.reference_decoder.json_text import NoEvent


@dataclass(frozen=True)
class Said:
    """What became of a record at an lsn. place: topic, partition, offset; content: what is read instead.

    event: type and id of an event; None where it is about the record alone.
    """

    lsn: int
    action: str
    place: tuple[str, int, int]
    event: tuple[str, str | None] | None
    content: Mapping[str, Any]


@dataclass(frozen=True)
class Times:
    """`begun`: (lsn, names of all schemas in force from it on), ascending; none: always all that there are.

    cut: up to it a record that its time's schemas refuse is read once more, by those of the cut.
    said: what became of single records, in the order of lsns.
    """

    begun: Sequence[tuple[int, frozenset[str]]] = ()
    cut: int = 0
    said: Sequence[Said] = ()

    def judged(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The event of one record, as `verdict.judged`. Raises NoEvent, for the first reason."""
        if self._newest(record, self._of_place(record), lambda one: one.action == "erase") is not None:
            raise NoEvent("erased")
        event, known = self._judged(record), self._at(max(record.get("lsn", 0), self.cut))
        named = event["event_type"], event.get("event_id")
        of = self._of_place(record) if named[1] is None else self._by_event.get(named, ())
        about = self._newest(record, of, lambda one: one.event == named)
        if about is None or about.action == "restore":
            return event
        if about.action == "retract":
            raise NoEvent("retracted", event["event_type"])
        return verdict.judged({**record, **about.content}, known)

    def _judged(self, record: Mapping[str, Any]) -> dict[str, Any]:
        lsn = record.get("lsn", 0)
        try:
            return verdict.judged(record, self._at(lsn))
        except NoEvent as refused:
            about = self._newest(record, self._of_place(record), lambda one: one.event is None)
            later = record if about is None else {**record, **about.content}
            is_newer = about is None and lsn < self.cut and self._at(self.cut) != self._at(lsn)
            if is_newer or (about is not None and about.action == "readmit"):
                try:
                    return verdict.judged(later, self._at(self.cut))
                except NoEvent:
                    pass
            raise refused from None

    def _newest(self, record: Mapping[str, Any], of: Sequence[Said], about: Callable[[Said], bool]) -> Said | None:
        known = max(record.get("lsn", 0), self.cut)
        return next((one for one in reversed(of) if one.lsn <= known and about(one)), None)

    def _of_place(self, record: Mapping[str, Any]) -> Sequence[Said]:
        return self._by_place.get(tuple(map(record.get, ("topic", "partition", "offset"))), ())

    @cached_property
    def _by_place(self) -> Mapping[Any, Sequence[Said]]:
        return self._by(lambda one: one.place)

    @cached_property
    def _by_event(self) -> Mapping[Any, Sequence[Said]]:
        return self._by(lambda one: one.event)

    def _by(self, key: Callable[[Said], Any]) -> Mapping[Any, Sequence[Said]]:
        found: defaultdict[Any, list[Said]] = defaultdict(list)
        for one in self.said:
            found[key(one)].append(one)
        return found

    def read(self, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """The event of one record, or None."""
        try:
            return self.judged(record)
        except NoEvent:
            return None

    def _at(self, lsn: int) -> verdict.InForce:
        place = bisect_right(self.begun, lsn, key=lambda one: one[0])
        if not self.begun:
            return None
        return self.begun[place - 1][1] if place else frozenset()


def times(log: ds.Dataset, cut: int) -> Times:
    """As the log says."""
    found = log.to_table(["lsn", "key"], filter=ds.field("kind") == "schema").to_pylist()
    names: frozenset[str] = frozenset()
    begun: dict[int, frozenset[str]] = {}
    for row in sorted(found, key=lambda row: row["lsn"]):
        names |= {row["key"].decode()}
        begun[row["lsn"]] = names
    columns = ["lsn", "topic", "partition", "offset", "key", "value", "headers"]
    revised = log.to_table(columns, filter=ds.field("kind") == "revision").to_pylist()
    said = (one for row in revised for one in _all_said(row))
    return Times(list(begun.items()), cut, sorted(said, key=lambda one: one.lsn))


def _all_said(row: Mapping[str, Any]) -> Iterator[Said]:
    """An entry about one record, or about all that were erased at once."""
    if {"key": "revision.action", "value": b"erased"} not in row["headers"]:
        yield _said(row)
        return
    for place in pa.ipc.open_stream(row["value"]).read_all().to_pylist():
        yield Said(row["lsn"], "erase", (place["topic"], place["partition"], place["offset"]), None, {})


def _said(row: Mapping[str, Any]) -> Said:
    headers = {header["key"]: header["value"] for header in row["headers"]}
    event, content = None, dict[str, Any]()
    if "revision.event_type" in headers:
        of = headers.get("revision.event_id")
        event = headers["revision.event_type"].decode(), None if of is None else of.decode()
    if "revision.topic" in headers:
        left = [header for header in row["headers"] if not header["key"].startswith("revision.")]
        content = {"topic": headers["revision.topic"].decode(), "headers": left}
        content |= {name: row[name] for name in ("key", "value")}
    place = row["topic"], row["partition"], row["offset"]
    return Said(row["lsn"], headers["revision.action"].decode(), place, event, content)
