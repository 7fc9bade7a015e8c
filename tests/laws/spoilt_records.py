"""Strategies: records of every event type in many styles of writing, whole and spoilt.

contract -> events (name, raw JSON) -> write -> bytes -> spoilt -> bytes
"""

import json
from datetime import UTC, datetime

import pyarrow as pa
from hypothesis import strategies as st

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import DELETED

CONTRACTS = project_contracts()
SENT = [contract for contract in CONTRACTS if not contract.is_outcome]
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
1234567812345678"""
TOKENS = st.sampled_from(_TOKENS.split()) | st.integers().map(str) | st.floats().map(repr) | TEXT.map(json.dumps)
_SNIPPETS = r"""\x00 \x1f \t \n \x20 \xff \xc3 \xa9 \xed\xa0\x80 \xef\xbb\xbf \\ " , : } { 0 - . e \\" \\\\ /*
\x7f \xe2\x80\xa8"""
SNIPPETS = st.sampled_from([text.encode().decode("unicode_escape").encode("latin-1") for text in _SNIPPETS.split()])

Member = tuple[str, str]
Record = tuple[str, bytes | None, list[dict[str, object]] | None]  # topic, value, headers


def table(batch: list[Record]) -> pa.Table:
    """tables.RECORD; the offset is the record's place in the batch."""
    rows = [
        {"lsn": 1, "topic": topic, "partition": 0, "offset": n, "timestamp": ARRIVED, "key": b"UA"}
        | {"value": value, "headers": headers}
        for n, (topic, value, headers) in enumerate(batch)
    ]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)


@st.composite
def batches(draw) -> list[Record]:
    """Records of one event type, mostly: good ones, and beside each some that are like it but spoilt."""
    contract = draw(st.sampled_from(SENT))
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
    if contract.nested:
        return [(name, json.dumps(value)) for name, value in draw(st.sampled_from(contract.examples)).items()]
    members = {"event_type": contract.event_type, "occurred_at": draw(INSTANTS | ODD_INSTANTS)}
    if draw(st.booleans()):
        members["event_id"] = str(draw(st.uuids()))
    for field in contract.fields:
        if field.required or draw(st.booleans()):
            members[field.name] = draw(values_of(field) if field.required else st.none() | values_of(field))
    if contract.compacted and draw(st.booleans()):
        members[DELETED] = draw(st.booleans())
    if draw(st.integers(0, 3)) == 0:
        members["unknown"] = draw(TEXT | st.integers() | st.none() | st.booleans() | st.floats(-1e9, 1e9))
    names = draw(st.permutations(list(members))) if draw(st.booleans()) else list(members)
    return [(name, json.dumps(members[name], ensure_ascii=draw(st.booleans()))) for name in names]


def values_of(field) -> st.SearchStrategy:
    schema = field.schema
    if field.arrow == row_types.INSTANT:
        return INSTANTS
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if field.arrow == pa.int64():
        low, high = schema["minimum"], schema["maximum"]
        return st.integers(low - 1, high + 1) | st.sampled_from([low, high])
    if field.arrow == pa.float64():
        return st.floats(schema.get("minimum", -1e9), schema.get("maximum", 1e9)) | st.integers(-91, 91)
    if "pattern" not in schema:
        return TEXT
    return IDS if schema["pattern"].startswith("^[A-Za-z0-9]") else st.from_regex(schema["pattern"], fullmatch=True)


def write(members: list[Member], style: tuple[str, str, str]) -> bytes:
    comma, colon, end = style
    text = "{" + comma.join(f'"{name}"{colon}{raw}' for name, raw in members) + "}" + end
    return text.encode("utf-8", "surrogatepass")


@st.composite
def spoilt(draw, members: list[Member], style: tuple[str, str, str]) -> bytes | None:
    """The record, spoilt in one of the ways in which records are bad."""
    way, place = draw(st.integers(0, 5)), draw(st.integers(0, len(members) - 1))
    before, (name, raw), after = members[:place], members[place], members[place + 1 :]
    if way == 0:  # another value
        other = draw(TOKENS | ODD_INSTANTS.map(json.dumps) if name.endswith("_at") else TOKENS)
        return write([*before, (name, other), *after], style)
    if way == 1:  # a key twice, perhaps spelt otherwise
        again = draw(st.sampled_from([name, f"\\u{ord(name[0]):04x}{name[1:]}", name.upper()]))
        return write([*members, (again, draw(st.just(raw) | TOKENS))], style)
    if way == 2:  # a member lost, or renamed
        return write([*before, *draw(st.sampled_from([[], [(name + "s", raw)]])), *after], style)
    value = write(members, style)
    start = draw(st.integers(0, len(value)))
    if way == 3:  # bytes in between, or instead
        return value[:start] + draw(SNIPPETS | st.binary(max_size=3)) + value[start + draw(st.integers(0, 2)) :]
    if way == 4:  # truncated
        return value[:start]
    return draw(st.sampled_from([None, b"", value * 2, value + b"x", b"[" + value + b"]", b"\xef\xbb\xbf" + value]))


def headers() -> st.SearchStrategy:
    names, values = st.sampled_from(["schema_version", "trace"]), st.sampled_from([b"1", b"01", b"2", b"", b"x", None])
    pairs = st.lists(st.tuples(names, st.just(b"1") | values), max_size=2)
    return st.none() | pairs.map(lambda some: [{"key": key, "value": value} for key, value in some])
