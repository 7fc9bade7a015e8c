"""The oracle's own reading of records against decode: two programs, one verdict."""

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.decode import assemble
from spark_jobs.sample import generate
from spark_jobs.sample.block import facts
from spark_jobs.sample.reference_decoder import verdict
from spark_jobs.sample.reference_decoder.json_text import NoEvent
from spark_jobs.sample.reference_decoder.schema_times import Times
from tests.contract_files import broken_examples
from tests.landed import landed, unlisted
from tests.laws.spoilt_records import batches, table

EXAMPLES = [(c.topic, json.dumps(e).encode()) for c in project_contracts() if not c.is_outcome for e in c.examples]
BROKEN = [
    (c.topic, json.dumps(bad).encode(), (why, c.event_type))
    for c in project_contracts()
    for bad, why, _ in broken_examples(c)
]
START = 1_740_830_400_000


ACCEPTED = ("fact", None)
Verdict = tuple[str, str | None]


def accepted(records: pa.Table) -> list[Verdict]:
    """What decode says, in the order of the records: a fact, or why not and the event type where it is known."""
    rejects = assemble.decode(records.select(row_types.RECORD.names), project_contracts()).rejects.to_pylist()
    why = {(one["topic"], one["partition"], one["offset"]): (one["reason"], one["event_type"]) for one in rejects}
    return [why.get((r["topic"], r["partition"], r["offset"]), ACCEPTED) for r in records.to_pylist()]


def read(records: pa.Table) -> list[Verdict]:
    return [judgement(record) for record in records.to_pylist()]


def judgement(record: dict) -> Verdict:
    try:
        verdict.judged(record)
    except NoEvent as refused:
        return refused.reason, refused.event_type
    return ACCEPTED


def one(topic: str, value: bytes | None, key: bytes | None = b"k", headers: list[dict] | None = None) -> pa.Table:
    table = landed([facts(topic, [key], [value])])
    return table.set_column(table.schema.get_field_index("headers"), "headers", pa.array([headers], row_types.HEADERS))


@pytest.mark.parametrize(("topic", "value"), EXAMPLES)
def test_good_examples_are_read(topic, value):
    event = Times().read({"topic": topic, "key": None, "value": value, "timestamp": None})
    assert event and event["event_type"] in project_contracts().by_topic(topic) and event["deleted"] is False


@pytest.mark.parametrize(("topic", "value", "why"), BROKEN)
def test_bad_examples_are_refused(topic, value, why):
    record = {"topic": topic, "key": None, "value": value, "timestamp": None}
    assert Times().read(record) is None and judgement(record) == why


def test_it_agrees_with_decode_about_everything_that_the_town_breaks():
    plan = generate.Plan(3, START, 1.0, malformed_share=0.6)
    records = unlisted(landed(generate.blocks(plan, project_contracts(), 2_000)))
    assert read(records) == accepted(records)


ODD = st.sampled_from(
    [b"1.0", b"1e2", b"1.5", b"-0", b"1e400", b"9223372036854775808", b"1" * 39, b"5.000000000000000000000001", b"null",
     b"true", b'"1"', b"[]", b"{}", b'"\\ud83d\\ude00"', b'"\\udead"', b"1e999999999", b"0e99999999999999999999",
     b"1e-99999999999999999999", b"0.1", b"NaN", b'"a\\u0000b"',
     b'"2025-02-28T23:59:59.999Z"', b'"2262-01-01T00:00:00.000Z"', b'"1969-12-31T23:59:59.999Z"', b'"red\\n"']
)  # fmt: skip


@given(st.sampled_from(EXAMPLES), st.data())
def test_it_agrees_with_decode_about_events_with_an_odd_value_in_a_field(example, data):
    topic, value = example
    event = json.loads(value)
    name = data.draw(st.sampled_from([*event, "note"]))
    fields = {n: json.dumps(v).encode() for n, v in event.items()} | {name: data.draw(ODD)}
    odd = b"{" + b",".join(json.dumps(n).encode() + b":" + v for n, v in fields.items()) + b"}"
    records = one(topic, odd)
    assert read(records) == accepted(records)


@given(st.sampled_from(EXAMPLES), st.integers(0, 500), st.binary(min_size=1, max_size=2))
def test_it_agrees_with_decode_about_damaged_bytes(example, place, damage):
    topic, value = example
    records = one(topic, value[:place] + damage + value[place + len(damage) :])
    assert read(records) == accepted(records)


@given(batches())
def test_it_agrees_with_decode_about_records_spoilt_in_any_way(batch):
    records = table(batch)
    assert read(records) == accepted(records)


@pytest.mark.parametrize(
    "more", [b'"note":1,"note":1', b'"note":{"a":1,"a":1}', b'"note":[{"a":1},{"a":1}]', b'"note":1']
)
def test_it_agrees_with_decode_about_keys_that_occur_twice(more):
    topic, value = EXAMPLES[0]
    records = one(topic, value[:-1] + b"," + more + b"}")
    assert read(records) == accepted(records)


@pytest.mark.parametrize("version", [b"1", b"01", b"2", b"x", b"", None])
def test_it_agrees_with_decode_about_versions(version):
    records = one(*EXAMPLES[0], headers=[{"key": "schema_version", "value": version}])
    assert read(records) == accepted(records)


@pytest.mark.parametrize("key", [b"UA", b"ua", b"", None, b"\xff\xff", b"UA\n"])
@pytest.mark.parametrize("topic", ["airline_changed", "order_placed", "nobody_knows"])
def test_it_agrees_with_decode_about_tombstones(topic, key):
    records = one(topic, None, key)
    assert read(records) == accepted(records)


def test_nesting_up_to_a_hundred_is_read():
    for depth, is_read in ((98, True), (99, True), (100, False), (5_000, False), (100_000, False)):
        topic, value = EXAMPLES[0]
        records = one(topic, value[:-1] + b',"note":' + b"[" * depth + b"]" * depth + b"}")
        expected = [ACCEPTED if is_read else ("too_deep", None)]
        assert (depth, read(records), accepted(records)) == (depth, expected, expected)
