"""Many records proven at once, because they are written alike.

page, rows of one topic -> learn a layout from one record -> match it against all -> proofs -> columns

A producer writes an event type with one program, so its records differ only in their values. A **layout** is such a
way to write: literal bytes with slots between them, as in `{"event_type":"page_viewed","user_id":` slot `,"url":"`
slot `"}`. It is learned by reading one record strictly; another record has it if all literals stand where the quotes
say they must, and then its keys are known to be distinct, its types to be those of the slots, and nothing follows. What
remains is to prove each slot's value. A record that has no learned layout, or a value that is not proven, is no reject:
`rows` decides.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.contracts.model import Contract
from spark_jobs.contracts.row_types import INSTANT
from spark_jobs.engine.decode.bulk import proofs
from spark_jobs.engine.decode.bulk.page import Index, Literals, Mask, Page, together

UNKNOWN = ""

FEWEST = 8  # rows for which looking for a layout is worth it
POOR = 4  # layouts that fit fewer rows than that, after which a page's rest goes row by row

_MEMBER = re.compile(
    rb' *"(?P<name>[^"\\\x00-\x1f]+)" *: *'
    rb'(?:"(?P<string>(?:[^"\\\x00-\x1f]|\\.)*)"|(?P<boolean>true|false)|(?P<null>null)|(?P<number>-?[0-9][-+.eE0-9]*))'
    rb" *[,}]"
)
_OPEN, _CLOSE = re.compile(rb" *\{"), re.compile(rb" *")

_NUMBER, _BOOLEAN = np.uint8(1), np.uint8(2)
_KIND_OF = np.zeros(256, np.uint8)  # of a bare value, by its first byte
_KIND_OF[[*b"-0123456789"]] = _NUMBER
_KIND_OF[[*b"tf"]] = _BOOLEAN


@dataclass(frozen=True)
class Slot:
    """A place for a value. `UNKNOWN` fields, those that the contract does not name, have an empty schema."""

    name: str
    kind: str  # string, instant, integer, number, boolean
    schema: dict[str, Any]

    @property
    def quoted(self) -> bool:
        return self.kind in ("string", "instant")


@dataclass(frozen=True)
class Layout:
    """literals[0] slots[0] literals[1] ... slots[n-1] literals[n]"""

    contract: Contract
    literals: tuple[bytes, ...]
    slots: tuple[Slot, ...]

    def of_kind(self, kind: str) -> dict[int, Slot]:
        """The slots of a kind, by their place."""
        return {place: slot for place, slot in enumerate(self.slots) if slot.kind == kind}

    @cached_property
    def quotes(self) -> int:
        return sum(literal.count(b'"') for literal in self.literals)

    @cached_property
    def size(self) -> int:
        """Bytes of the shortest record."""
        return sum(map(len, self.literals))

    @cached_property
    def words(self) -> Literals:
        return Literals(self.literals)

    @cached_property
    def bare(self) -> tuple[Index, NDArray[np.uint8]]:
        """(the slots without quotes, the kind of value that their first byte must begin)."""
        places = np.array([place for place, slot in enumerate(self.slots) if not slot.quoted], np.int64)
        return places, np.array([self.slots[place].kind == "boolean" for place in places], np.uint8) + _NUMBER

    @cached_property
    def places(self) -> tuple[Index, Index, Index]:
        """(bytes of each literal; per slot: bytes of the next literal before its first quote, and that quote's number).

        A quoted slot ends at the next quote, a bare one that many bytes before it; -1 where no quote follows.
        """
        counts = np.cumsum([literal.count(b'"') for literal in self.literals])
        ahead = [literal.find(b'"') for literal in self.literals[1:]]
        return np.array([len(literal) for literal in self.literals]), np.array(ahead), counts[:-1]


@dataclass(frozen=True)
class Proven:
    """Rows of a page that are facts of the contract, and their columns (without those carried over)."""

    contract: Contract
    rows: Index
    columns: dict[str, pa.Array]


def prove(page: Page, rows: Index, contracts: Mapping[str, Contract]) -> tuple[list[Proven], Index]:
    """(what is proven of one topic's rows, the rows left to judge); `contracts`: the topic's, by event type."""
    if not contracts:
        return [], rows
    found, aside, poor = [], [rows[~page.clean[rows]]], 0
    rows = rows[page.clean[rows]]
    while len(rows) >= FEWEST and poor < POOR:
        layout = learn(page.record(int(rows[0])), contracts)
        if layout is None:
            aside.append(rows[:1])
            rows = rows[1:]
            continue
        alike, begin, end = match(page, rows, layout)
        proven, refused = _columns(page, rows[alike], begin, end, layout)
        found.append(proven)
        aside.append(refused)
        poor += len(proven.rows) + len(refused) < FEWEST
        rows = rows[~alike]
    return [p for p in found if p.rows.size], np.sort(np.concatenate([*aside, rows]))


def learn(record: bytes, contracts: Mapping[str, Contract]) -> Layout | None:
    """The layout of a flat JSON object that could be a fact; None where it is none, or is written unusually."""
    members = _members(record)
    names = [member["name"].decode() for member in members]
    contract = _claimed(dict(zip(names, members, strict=True)), contracts)
    if contract is None or len(set(names)) < len(names) or not set(contract.schema["required"]) <= set(names):
        return None
    slots, cuts = [], [0]
    for name, member in zip(names, members, strict=True):
        written, field = str(member.lastgroup), contract.schema["properties"].get(name)
        if name == "event_type" or (written == "null" and (field is None or "null" in field["type"])):
            continue  # part of the literal
        slot = Slot(name, _kind(field), field) if field else Slot(UNKNOWN, written, {})
        if written != ("string" if slot.quoted else "number" if slot.kind == "integer" else slot.kind):
            return None
        slots.append(slot)
        cuts += member.span(written)
    cuts.append(len(record))
    return Layout(contract, tuple(record[a:b] for a, b in zip(cuts[::2], cuts[1::2], strict=True)), tuple(slots))


def match(page: Page, rows: Index, layout: Layout) -> tuple[Mask, Index, Index]:
    """(which of the rows have the layout; where each slot begins and ends in those, one line a slot)."""
    alike = (page.quote_count[rows] == layout.quotes) & (page.ends[rows] - page.starts[rows] >= layout.size)
    begin, end, fits = _spans(page, rows[alike], layout)
    alike[alike] = fits
    begin, end = begin[:, fits], end[:, fits]
    # Literal by literal from the left: each stands where the one before and the next quote say.
    same = page.hold(layout.words, np.concatenate([page.starts[rows[alike]][None, :], end]))
    bare, kind = layout.bare  # null, true, false and numbers look alike from outside
    same &= np.logical_and.reduce(_KIND_OF[page.data[begin[bare]]] == kind[:, None])
    if not same.all():
        alike[alike] = same
        begin, end = begin[:, same], end[:, same]
    return alike, begin, end


def _spans(page: Page, rows: Index, layout: Layout) -> tuple[Index, Index, Mask]:
    """Where the slots would be, by the quotes alone; and in which rows that leaves room for the literals."""
    size, ahead, quote = layout.places
    last = page.ends[rows]
    bare_end = (ahead < 0)[:, None]  # the last slot, when no quote follows
    following = page.quotes[page.first_quote[rows] + np.where(bare_end, 0, quote[:, None])]
    end = np.where(bare_end, last - size[-1], following - ahead[:, None])
    begin = np.concatenate([page.starts[rows][None, :], end[:-1]]) + size[:-1, None]
    fits = np.logical_and.reduce((begin <= end) & (end + size[1:, None] <= last))
    return begin, end, fits & (end[-1] + size[-1] == last)


def _members(record: bytes) -> list[re.Match[bytes]]:
    """The members of an object of scalars, written without control characters or escaped names; else none."""
    at = _OPEN.match(record)
    members: list[re.Match[bytes]] = []
    while member := _MEMBER.match(record, members[-1].end() if members else at.end() if at else len(record)):
        members.append(member)
        if member[0].endswith(b"}"):
            return members if _CLOSE.fullmatch(record, member.end()) else []
    return []


def _claimed(members: Mapping[str, re.Match[bytes]], contracts: Mapping[str, Contract]) -> Contract | None:
    event_type = members.get("event_type")
    return contracts.get((event_type["string"] or b"").decode()) if event_type else None


def _kind(schema: Mapping[str, Any]) -> str:
    if "format" in schema:
        return "instant"
    kinds = schema["type"]
    return str(kinds if isinstance(kinds, str) else next(kind for kind in kinds if kind != "null"))


def _columns(page: Page, rows: Index, begin: Index, end: Index, layout: Layout) -> tuple[Proven, Index]:
    """(the rows whose every value is proven, those where one is not)."""
    columns: dict[str, pa.Array] = {}
    proven = np.ones(len(rows), bool)
    for name, column, sure in _proofs(page, rows, begin, end, layout):
        columns[name] = column
        proven &= sure
    columns.pop(UNKNOWN, None)
    if proven.all():
        return Proven(layout.contract, rows, columns), rows[:0]
    kept = {name: column.filter(pa.array(proven)) for name, column in columns.items()}
    return Proven(layout.contract, rows[proven], kept), rows[~proven]


def _proofs(page: Page, rows: Index, begin: Index, end: Index, layout: Layout) -> Iterator[tuple[str, pa.Array, Mask]]:
    """(field, its column, where that is proven); short integers and instants of several fields in one call."""
    for at in _groups(layout.of_kind("integer"), len(rows)):
        for slot, whole, sure in zip(at.values(), *proofs.integers(page, begin[[*at]], end[[*at]]), strict=True):
            yield slot.name, pa.array(whole), sure & _in_range(whole, slot.schema)
    for at in _groups(layout.of_kind("instant"), len(rows)):
        for slot, micros, sure in zip(at.values(), *proofs.instants(page, begin[[*at]], end[[*at]]), strict=True):
            yield slot.name, pa.array(micros).cast(INSTANT), sure
    for place, slot in layout.of_kind("string").items():
        yield slot.name, *proofs.strings(page, begin[place], end[place], rows, slot.schema)
    for place, slot in layout.of_kind("number").items():
        value, sure = proofs.numbers(page, begin[place], end[place])
        yield slot.name, pa.array(value), sure & _in_range(value, slot.schema)
    for place, slot in layout.of_kind("boolean").items():
        true, sure = proofs.booleans(page, begin[place], end[place])
        yield slot.name, pa.array(true), sure


def _groups(slots: dict[int, Slot], size: int) -> Iterator[dict[int, Slot]]:
    return (dict([*slots.items()][some]) for some in together(len(slots), size))


def _in_range(value: NDArray[Any], schema: Mapping[str, Any]) -> Mask:
    sure = np.ones(len(value), bool)
    if "minimum" in schema:
        sure &= value >= schema["minimum"]
    if "maximum" in schema:
        sure &= value <= schema["maximum"]
    return sure
