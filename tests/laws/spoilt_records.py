"""Strategies: records of every event type in many styles of writing, whole and spoilt.

contract -> events (name, raw JSON or the members of an object) -> write -> bytes -> spoilt -> bytes
"""

import copy
import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_jobs.contracts import row_types
from spark_jobs.contracts.field_paths import KEYWORD, paths
from spark_jobs.contracts.model import DELETED
from tests.laws import nested_contract

CONTRACTS = nested_contract.contracts()
SENT = [contract for contract in CONTRACTS if not contract.is_outcome]
NESTED = [contract for contract in SENT if contract.nested]
ARRIVED = datetime(2025, 3, 1, tzinfo=UTC)
STYLES = [(",", ":", ""), (", ", ": ", ""), (" , ", " :", " "), (",\n", ":", "\n")]  # comma, colon, end

TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["", "'; DROP", "e\u0301\u202e", "\U0001f600"]
)
IDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.:/-]{0,12}\Z")
INSTANTS = st.datetimes(datetime(1969, 12, 30), datetime(2262, 1, 3)).map(
    lambda at: f"{at.isoformat(timespec='milliseconds')}Z"
)
_DAYS = """0000-01-01 1969-12-31 1970-01-01 2261-12-31 2262-01-01 9999-12-31 2000-02-29 2100-02-29 2025-02-29 2025-00-10
2025-13-01 2025-04-31 2025-01-00 2025-01-32"""
_MOMENTS = """2025-03-01T24:00:00.000Z 2025-03-01T23:60:00.000Z 2016-12-31T23:59:60.000Z 2025-03-01T12:00:00Z
2025-03-01T12:00:00.000 2025-03-01T12:00:00.000+01:00 2025-03-01x12:00:00.000Z 2025-03-01T12:00:00.0000Z
\uff12025-03-01T12:00:00.000Z 2025-03-01T12:00:00.000z +025-03-01T12:00:00.000Z 2025-03-01T12:00:00.0:0Z
1740830400000"""
ODD_INSTANTS = st.sampled_from(
    [*(f"{day}T23:59:59.999Z" for day in _DAYS.split()), *_MOMENTS.split(), "2025-03-01T12:00:00.000Z\n"]
)
# Raw JSON, or nearly: what may stand in the place of a value.
_TOKENS = r"""0 -0 1 -1 01 +1 1. .5 1.0 1e2 1E+2 1.5 1e400 -1e400 0.1e1 1.00000000000000000001 9007199254740993.0 -0.0
0.0 1_0 0x10 123456789012345678 1234567890123456789 9223372036854775807 9223372036854775808 -9223372036854775808
-9223372036854775809 99999999999999999999 123456789012345678901234567890123456789 0.30000000000000004 90.000000000000001
NaN Infinity -Infinity true false True null nul "" "1" "\u0041" "\ud800" "\ud83d\ude00" "\x41" "a\"b" "\\" "\\\"" "\n"
{} [] {"a":1} {"a":1,"a":2} [1,[2]] 0e-99999999999999999999 -5 - -.5 007.5 00 -12345678 12345678 123456789
1234567812345678 9214646399999 9214646400000"""
TOKENS = st.sampled_from(_TOKENS.split()) | st.integers().map(str) | st.floats().map(repr) | TEXT.map(json.dumps)
_SNIPPETS = r"""\x00 \x1f \t \n \x20 \xff \xc3 \xa9 \xed\xa0\x80 \xef\xbb\xbf \\ " , : } { 0 - . e \\" \\\\ /*
\x7f \xe2\x80\xa8"""
SNIPPETS = st.sampled_from([text.encode().decode("unicode_escape").encode("latin-1") for text in _SNIPPETS.split()])

UNKNOWN = st.recursive(
    TEXT | st.integers() | st.none() | st.booleans() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)

Member = tuple[str, Any]  # the name as JSON spells it, and raw JSON or the members of an object
Record = tuple[str, bytes | None, list[dict[str, object]] | None]  # topic, value, headers


def table(batch: list[Record]) -> pa.Table:
    """row_types.RECORD; the offset is the record's place in the batch."""
    rows = [
        {"lsn": 1, "topic": topic, "partition": 0, "offset": n, "timestamp": ARRIVED, "key": b"UA"}
        | {"value": value, "headers": headers}
        for n, (topic, value, headers) in enumerate(batch)
    ]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)


@st.composite
def batches(draw, among=SENT) -> list[Record]:
    """Records of one event type, mostly: good ones, and beside each some that are like it but spoilt."""
    contract = draw(st.sampled_from(among))
    values: list[bytes | None] = []
    for _ in range(draw(st.integers(1, 3))):
        members, style = draw(events(contract)), draw(st.sampled_from(STYLES))
        values.append(write(members, style))
        values += draw(st.lists(spoilt(members, style), max_size=4))
    topics = st.sampled_from([contract.topic] * 12 + ["page_viewed", "nobody_knows"])
    return [(draw(topics), value, draw(headers())) for value in draw(st.permutations(values))]


@st.composite
def events(draw, contract) -> list[Member]:
    """Members of an event that is valid, or just beyond a limit."""
    event = draw(nested_events(contract) if contract.nested else flat_events(contract))
    if draw(st.integers(0, 3)) == 0:
        event["unknown"] = draw(UNKNOWN)
    return draw(members_of(event))


@st.composite
def flat_events(draw, contract) -> dict[str, Any]:
    event = {"event_type": contract.event_type, "occurred_at": draw(INSTANTS | ODD_INSTANTS)}
    if draw(st.booleans()):
        event["event_id"] = str(draw(st.uuids()))
    for field in contract.fields:
        if field.required or draw(st.booleans()):
            event[field.name] = draw(values_of(field) if field.required else st.none() | values_of(field))
    if contract.compacted and draw(st.booleans()):
        event[DELETED] = draw(st.booleans())
    return event


@st.composite
def nested_events(draw, contract) -> dict[str, Any]:
    """An example with other values in some places, and without some of its objects."""
    event = copy.deepcopy(draw(st.sampled_from(contract.examples)))
    for field in contract.fields:
        for *outer, name in draw(st.sampled_from([[], paths(field.schema.get(KEYWORD, field.name))])):
            inside = event
            for one in outer:
                inside = inside.get(one) if isinstance(inside, dict) else None
            if isinstance(inside, dict):
                inside[name] = draw(st.none() | values_of(field))
    for name in [name for name, value in event.items() if isinstance(value, dict)]:
        if (way := draw(st.integers(0, 5))) == 0:
            del event[name]
        elif way == 1:
            event[name] = None
    return event


@st.composite
def members_of(draw, event: dict[str, Any]) -> list[Member]:
    """The event written down, perhaps in another order."""
    names = draw(st.permutations(list(event))) if draw(st.booleans()) else list(event)
    is_ascii = draw(st.booleans())
    return [
        (
            raw(name, is_ascii)[1:-1],
            draw(members_of(value)) if isinstance(value := event[name], dict) else raw(value, is_ascii),
        )
        for name in names
    ]


def raw(value: Any, is_ascii: bool) -> str:
    return json.dumps(value, ensure_ascii=is_ascii)


def values_of(field) -> st.SearchStrategy:
    schema = field.schema
    if field.arrow == row_types.INSTANT:
        return INSTANTS
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if field.arrow == pa.bool_():
        return st.booleans()
    if field.arrow == pa.int64():
        low, high = schema["minimum"], schema["maximum"]
        return st.integers(low - 1, high + 1) | st.sampled_from([low, high])
    if field.arrow == pa.float64():
        return st.floats(schema.get("minimum", -1e9), schema.get("maximum", 1e9)) | st.integers(-91, 91)
    if "pattern" not in schema:
        return TEXT
    return IDS if schema["pattern"].startswith("^[A-Za-z0-9]") else st.from_regex(schema["pattern"], fullmatch=True)


def write(members: list[Member], style: tuple[str, str, str]) -> bytes:
    return (text_of(members, style) + style[2]).encode("utf-8", "surrogatepass")


def text_of(value: str | list[Member], style: tuple[str, str, str]) -> str:
    if isinstance(value, str):
        return value
    comma, colon, _ = style
    return "{" + comma.join(f'"{name}"{colon}{text_of(inner, style)}' for name, inner in value) + "}"


@st.composite
def spoilt(draw, members: list[Member], style: tuple[str, str, str]) -> bytes | None:
    """The record, spoilt in one of the ways in which records are bad."""
    way = draw(st.integers(0, 5))
    if way <= 2:
        return write(draw(spoilt_members(members)), style)
    value = write(members, style)
    start = draw(st.integers(0, len(value)))
    if way == 3:  # bytes in between, or instead
        return value[:start] + draw(SNIPPETS | st.binary(max_size=3)) + value[start + draw(st.integers(0, 2)) :]
    if way == 4:  # truncated
        return value[:start]
    return draw(st.sampled_from([None, b"", value * 2, value + b"x", b"[" + value + b"]", b"\xef\xbb\xbf" + value]))


@st.composite
def spoilt_members(draw, members: list[Member]) -> list[Member]:
    """One member spoilt, of this object or of one inside it."""
    place = draw(st.integers(0, len(members) - 1))
    before, (name, value), after = members[:place], members[place], members[place + 1 :]
    if value and isinstance(value, list) and draw(st.integers(0, 3)):
        return [*before, (name, draw(spoilt_members(value))), *after]
    way = draw(st.integers(0, 2))
    if way == 0:  # another value
        other = draw(TOKENS | ODD_INSTANTS.map(json.dumps) if name.endswith("at") else TOKENS)
        return [*before, (name, other), *after]
    if way == 1:  # a key twice, perhaps spelt otherwise
        spelt = f"\\u{ord(name[0]):04x}{name[1:]}" if name else name
        again = draw(st.sampled_from([name, spelt, name.upper()]))
        return [*members, (again, draw(st.just(value) | TOKENS))]
    return [*before, *draw(st.sampled_from([[], [(name + "s", value)]])), *after]  # a member lost, or renamed


def headers() -> st.SearchStrategy:
    names, values = st.sampled_from(["schema_version", "trace"]), st.sampled_from([b"1", b"01", b"2", b"", b"x", None])
    pairs = st.lists(st.tuples(names, st.just(b"1") | values), max_size=2)
    return st.none() | pairs.map(lambda some: [{"key": key, "value": value} for key, value in some])
