"""Decode beyond single values: identities, tombstones, shapes of input, schemas without bounds."""

import hashlib
import json
import math
import random
import re
import uuid
from datetime import datetime

import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import load_contracts, project_contracts
from spark_jobs.engine.decode import assemble
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.bulk import prove
from spark_jobs.engine.decode.bulk.columns import column
from tests.contract_files import RECORDED_AT, SCHEMA, records, write
from tests.decoded_by_row import by_row

KNOWN = project_contracts()
PAGE, AIRLINE = KNOWN.of("page_viewed"), KNOWN.of("airline_changed")
BUS = KNOWN.of("bus_position_reported").examples[0]


@pytest.fixture(params=[decode, by_row], ids=["bulk", "row by row"])
def way(request, monkeypatch):
    monkeypatch.setattr(prove, "FEWEST", 1)
    return request.param


def test_a_fact_carries_its_place_in_the_log_its_envelope_and_its_fields(way):
    event = PAGE.examples[0]
    facts = way(records("page_viewed", [event]), KNOWN).facts
    assert facts.keys() == {"page_viewed"}
    assert facts["page_viewed"].schema == PAGE.fact_schema
    (fact,) = facts["page_viewed"].to_pylist()
    assert (
        fact.items()
        >= {"lsn": 1, "topic": "page_viewed", "partition": 0, "offset": 0, "timestamp": RECORDED_AT}.items()
    )
    assert fact.items() >= {key: event[key] for key in ("event_id", "event_type", "user_id", "url", "referrer")}.items()
    assert (fact["occurred_at"].isoformat(), fact["deleted"]) == ("2025-03-01T12:00:00+00:00", False)


def test_an_identity_is_of_type_and_id_and_without_id_of_the_place(way, tmp_path):
    write(tmp_path)
    some = "6f1c2d3e-4b5a-4978-8a6b-0c1d2e3f4a5b"
    ids = [some, some, some.upper(), some.replace("-", "_"), "", "é" * 18, "7", None, None, str(uuid.UUID(int=0))]
    events = [{**SCHEMA["examples"][0], "event_id": one} for one in ids]
    sent = [{name: value for name, value in event.items() if value is not None} for event in events]
    facts = way(records("heart_beaten", sent), load_contracts(tmp_path)).facts["heart_beaten"].sort_by("offset")
    found = facts["identity"].to_pylist()
    assert found == [identity_of(one, offset) for offset, one in enumerate(ids)]
    assert len(set(found)) == len(ids) - 1


def identity_of(event_id: str | None, offset: int) -> bytes:
    """The formula of `decode.identity`, the plain way."""
    if event_id is None:
        return hashlib.md5(f"heart_beaten 1 heart_beaten 0 {offset}".encode()).digest()
    if not re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", event_id):
        return hashlib.md5(f"heart_beaten {event_id}".encode()).digest()
    kind = hashlib.md5(b"heart_beaten").digest()
    return bytes(a ^ b for a, b in zip(uuid.UUID(event_id).bytes, kind, strict=True))


def test_a_tombstone_is_a_fact_that_deletes_its_key(way):
    sent = records(AIRLINE.topic, [None]).set_column(5, "key", pa.array([b"UA"], pa.binary()))
    (fact,) = way(sent, KNOWN).facts["airline_changed"].to_pylist()
    expected = {"carrier": "UA", "name": None, "deleted": True, "occurred_at": RECORDED_AT, "event_id": None}
    assert fact.items() >= expected.items()


def test_a_value_may_say_deleted_itself(way):
    events = [{**AIRLINE.examples[0], "deleted": deleted} for deleted in (True, False)]
    facts = way(records(AIRLINE.topic, events), KNOWN).facts["airline_changed"]
    assert facts.sort_by("offset")["deleted"].to_pylist() == [True, False]
    assert facts["name"].null_count == 0


def test_a_kafka_timestamp_beyond_all_calendars_stops_nothing(way):
    far = pa.array([2**60, 2**60, 2**60], pa.int64()).cast(row_types.INSTANT)
    sent = pa.concat_tables([records("airline_changed", [AIRLINE.examples[0], None]), records("page_viewed", [b"{"])])
    keyed = sent.set_column(4, "timestamp", far).set_column(5, "key", pa.array([b"UA"] * 3, pa.binary()))
    decoded = way(keyed, KNOWN)
    assert decoded.facts["airline_changed"].num_rows == 1
    assert sorted(decoded.rejects["reason"].to_pylist()) == ["not_json", "time_out_of_range"]


def test_numbers_arrive_as_they_were_written(way):
    chance = random.Random(7)
    written = ["0.0", "-0.0", "-0", "52.520008", "1e1", "90", *(repr(chance.uniform(-90, 90)) for _ in range(300))]
    values = [json.dumps({**BUS, "lat": None}).replace("null", text).encode() for text in written]
    facts = way(records("bus_position_reported", values), KNOWN).facts["bus_position_reported"].sort_by("offset")
    assert facts["lat"].to_pylist() == [float(text) for text in written]
    assert [math.copysign(1, lat) for lat in facts["lat"].to_pylist()[:3]] == [1, -1, 1]


def test_every_day_of_the_calendar_is_known_and_no_other():
    """Proven in bulk, that is: whatever is not proven is judged alone."""
    months = [f"{year}-{month:02d}" for year in range(1968, 2264) for month in range(14)]
    texts = [f"{month}-{day:02d}T23:59:59.999Z" for month in months for day in (0, 1, 9, 10, 28, 29, 30, 31, 32)]
    values = pa.array([instant_or_none(text) for text in texts], row_types.INSTANT)
    found, proven = column(texts, SCHEMA["properties"]["occurred_at"], required=True, certain=True)
    assert found.equals(values)
    assert proven.tolist() == values.is_valid().to_pylist()


def instant_or_none(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.year in row_types.YEARS else None


def test_a_schema_without_bounds_still_refuses_what_does_not_fit(way, tmp_path):
    write(tmp_path, fields={"beats": {"type": "integer"}, "load": {"type": "number"}})
    known = load_contracts(tmp_path)
    texts = {"beats": [str(2**63 - 1), str(-(2**63)), str(2**63), str(-(2**63) - 1), "1e400", "9223372036854775807.0"]}
    texts["load"] = ["1e308", "1e309", str(10**400)]
    good = json.dumps({**SCHEMA["examples"][0], "load": 0.5})
    spoilt = [good.replace("60" if name == "beats" else "0.5", text) for name, some in texts.items() for text in some]
    decoded = way(records("heart_beaten", [text.encode() for text in spoilt]), known)
    assert sorted(decoded.facts["heart_beaten"]["offset"].to_pylist()) == [0, 1, 5, 6]
    assert set(decoded.rejects["reason"].to_pylist()) == {"number_too_large"}
    beats = dict(zip(*(decoded.facts["heart_beaten"][name].to_pylist() for name in ("offset", "beats")), strict=True))
    assert (beats[0], beats[1], beats[5]) == (2**63 - 1, -(2**63), 2**63 - 1)


def test_lengths_are_of_characters_and_not_of_bytes_or_escapes(way, tmp_path):
    write(tmp_path, fields={"note": {"type": "string", "minLength": 2, "maxLength": 3}})
    texts = ["é", "\\u00e9", "éé", "\\u00e9\\n", "\U0001f600" * 3, "\U0001f600" * 4, "ab", "a", "abcd"]
    good = json.dumps({**SCHEMA["examples"][0], "note": "?"})
    sent = [good.replace("?", text.replace("\\\\", "\\")).encode() for text in texts]
    for some in (sent, [value for value in sent if value.isascii() and b"\\" not in value]):
        decoded = way(records("heart_beaten", some), load_contracts(tmp_path))
        kept = {some[offset] for offset in decoded.facts["heart_beaten"]["offset"].to_pylist()}
        assert kept == {value for value in some if 2 <= len(json.loads(value)["note"]) <= 3}
        assert set(decoded.rejects["reason"].to_pylist()) == {"bad_length"}


def test_a_topic_may_carry_several_event_types(way, tmp_path, monkeypatch):
    if way is decode:
        monkeypatch.setattr(assemble, "judge", None)  # all are proven in bulk
    for name in ("heart_beaten", "heart_stopped"):
        write(tmp_path, name=name, **{"x-tidemark": {"key": "beats", "owner": "o", "topic": "hearts"}})
    known = load_contracts(tmp_path)
    events = [{**SCHEMA["examples"][0], "event_type": name} for name in ("heart_beaten", "heart_stopped") * 20]
    decoded = way(records("hearts", events), known)
    assert {name: facts.num_rows for name, facts in decoded.facts.items()} == {"heart_beaten": 20, "heart_stopped": 20}


def test_slices_chunks_and_nothing_at_all_are_fine_inputs(way):
    sent = records("page_viewed", [PAGE.examples[0], b"{", PAGE.examples[1]] * 5)
    pieces = pa.concat_tables([sent.slice(0, 4), sent.slice(4, 0), sent.slice(4)]).slice(1)
    decoded = way(pieces, KNOWN)
    assert sorted(decoded.facts["page_viewed"]["offset"].to_pylist()) == [2, 3, 5, 6, 8, 9, 11, 12, 14]
    assert decoded.rejects["offset"].to_pylist() == [1, 4, 7, 10, 13]
    empty = way(sent.slice(0, 0), KNOWN)
    assert (empty.facts, empty.rejects.num_rows, empty.rejects.schema) == ({}, 0, row_types.REJECT)


def test_many_ways_of_writing_in_one_batch_are_all_read(monkeypatch):
    event = PAGE.examples[0]
    names = list(event)
    written = []
    for turn in range(600):
        order = names[turn % len(names) :] + names[: turn % len(names)]
        written.append(json.dumps({name: event[name] for name in order}, indent=turn % 7 or None).encode())
    decoded = decode(records("page_viewed", written), KNOWN)
    assert decoded.facts["page_viewed"].num_rows == len(written)


def test_a_record_may_be_nested_a_hundred_deep_and_no_depth_stops_the_others(way):
    event = json.dumps(PAGE.examples[0])[:-1]
    depths = [*range(90, 110), *range(900, 1100)]  # Python's own limit among them
    decoded = way(records("page_viewed", [f'{event},"more":{"[" * n}{"]" * n}}}'.encode() for n in depths]), KNOWN)
    assert sorted(decoded.facts["page_viewed"]["offset"].to_pylist()) == [*range(10)]
    assert set(decoded.rejects["reason"].to_pylist()) == {"too_deep"}


def test_null_is_none_of_the_listed_values(way, tmp_path):
    write(tmp_path, fields={"mood": {"type": ["string", "null"], "enum": ["calm"]}})
    events = [{**SCHEMA["examples"][0], **more} for more in ({}, {"mood": "calm"}, {"mood": None})]
    decoded = way(records("heart_beaten", events), load_contracts(tmp_path))
    assert sorted(decoded.facts["heart_beaten"]["offset"].to_pylist()) == [0, 1]
    assert decoded.rejects["reason"].to_pylist() == ["not_in_enum"]
