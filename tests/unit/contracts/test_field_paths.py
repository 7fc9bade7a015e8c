"""Fields that stand inside other objects of a record: what is found, what is rejected and for which field."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from spark_jobs.contracts.field_paths import check, check_apart, lifted
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.bulk import prove
from spark_jobs.sample.reference_decoder.schema_times import Times
from tests.contract_files import records
from tests.decoded_by_row import by_row

FIRST_BEYOND = 9_214_646_400_000  # 2262 in milliseconds since 1970
ROWS = project_contracts().of("order_row_changed")
GOOD = ROWS.examples[0]


@pytest.fixture(autouse=True)
def bulk_for_few_records(monkeypatch):
    monkeypatch.setattr(prove, "FEWEST", 1)


def decoded(value: Any, key: bytes = b"UA"):
    table = records("order_row_changed", [value])
    table = table.set_column(table.column_names.index("key"), table.schema.field("key"), [[key]])
    found = decode(table, project_contracts())
    assert by_row(table, project_contracts()).facts == found.facts
    theirs = Times().read({**table.to_pylist()[0], "topic": "order_row_changed"})
    assert (theirs is None) == (found.rejects.num_rows == 1)  # the oracle's own reading agrees
    return found


def test_a_change_becomes_one_flat_fact():
    (fact,) = decoded(GOOD).facts["order_row_changed"].to_pylist()
    source, after = GOOD["source"], GOOD["after"]
    assert fact["event_id"] == f"{source['lsn']}/u/{after['order_id']}"
    assert (fact["status"], fact["status_before"]) == (after["status"], GOOD["before"]["status"])
    assert int(fact["occurred_at"].timestamp() * 1000) == source["ts_ms"]
    assert (fact["deleted"], fact["source_lsn"]) == (False, source["lsn"])


@pytest.mark.parametrize("at", [0, FIRST_BEYOND - 1])
def test_an_integer_in_the_place_of_an_instant_is_milliseconds(at: int):
    (fact,) = decoded({**GOOD, "source": {**GOOD["source"], "ts_ms": at}}).facts["order_row_changed"].to_pylist()
    assert fact["occurred_at"] == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)


def test_instants_may_be_milliseconds_here_and_text_there():
    texts = ["2025-03-01T12:00:00.000Z", 1_740_830_400_000, "2025-03-01T12:00:00.000", 1_740_830_400_001]
    sent = records("order_row_changed", [{**GOOD, "source": {**GOOD["source"], "ts_ms": text}} for text in texts])
    found = decode(sent, project_contracts())
    assert sorted(found.facts["order_row_changed"]["offset"].to_pylist()) == [0, 1, 3]
    assert found.rejects["reason"].to_pylist() == ["bad_timestamp"]


def test_a_deletion_has_the_key_of_what_was_there():
    (fact,) = decoded({**GOOD, "op": "d", "after": None}).facts["order_row_changed"].to_pylist()
    assert fact["deleted"] and fact["order_id"] == GOOD["before"]["order_id"] and fact["status"] is None


def test_a_null_value_takes_its_key_from_the_key_object():
    (fact,) = decoded(None, b'{"order_id":"o-7"}').facts["order_row_changed"].to_pylist()
    assert fact["deleted"] and fact["order_id"] == "o-7" and fact["op"] is None
    assert decoded(None, b"o-7").rejects["reason"].to_pylist() == ["bad_key"]


@pytest.mark.parametrize(
    ("change", "reason", "field"),
    [
        ({"after": "a row"}, "wrong_type", "event_id"),
        ({"before": 7, "after": None}, "wrong_type", "event_id"),
        ({"before": "a row"}, "wrong_type", "event_id"),
        ({"source": {**GOOD["source"], "ts_ms": 10**18}}, "time_out_of_range", "occurred_at"),
        ({"source": {**GOOD["source"], "ts_ms": FIRST_BEYOND}}, "time_out_of_range", "occurred_at"),
        ({"source": {**GOOD["source"], "ts_ms": -1}}, "time_out_of_range", "occurred_at"),
        ({"source": {**GOOD["source"], "ts_ms": 1.5}}, "wrong_type", "occurred_at"),
        ({"source": {**GOOD["source"], "lsn": None}}, "null_field", "source_lsn"),
        ({"before": None, "after": {}}, "null_field", "order_id"),
    ],
)
def test_what_stands_wrongly_is_rejected_by_the_fields_name(change: dict[str, Any], reason: str, field: str):
    rejects = decoded({**GOOD, **change}).rejects.to_pylist()
    assert [(one["reason"], one["field"]) for one in rejects] == [(reason, field)]


def test_what_a_record_says_of_its_type_is_nothing():
    assert decoded(json.dumps({**GOOD, "event_type": "order_placed"}).encode()).facts.keys() == {"order_row_changed"}


@pytest.mark.parametrize("place", ["a..b", "a b", "", ["a", 1], 7, "a|", "=x", [], ".".join("a" * 33)])
def test_a_place_that_is_written_wrongly_is_refused(place: Any):
    with pytest.raises(ValueError, match="field status: x-from is"):
        check("status", {"x-from": place})


def test_a_field_at_the_top_has_a_plain_name():
    check("a", {})
    with pytest.raises(ValueError, match=r"field a.b: x-from is"):
        check("a.b", {})


def test_no_field_stands_inside_another():
    check_apart({"a": {"x-from": "row.id"}, "b": {"x-from": "row.id|old.id"}, "c": {"x-from": "row.id=7"}, "rows": {}})
    for outer in ({"row": {}}, {"b": {"x-from": ["x", "y|row=1"]}}):
        with pytest.raises(ValueError, match=r"field a stands inside the field (row|b)"):
            check_apart({"a": {"x-from": "row.id"}, **outer})


@pytest.mark.parametrize(
    "lacking", [{"a": 7}, {"a": 7, "b": None}, {"a": 7, "b": {"c": None}}, {"a": None, "b": {"c": "x"}}]
)
def test_an_id_of_several_places_is_there_only_where_all_of_them_are(lacking: dict[str, Any]):
    place = {"id": {"x-from": ["a", "b.c"]}}
    assert lifted({"a": 7, "b": {"c": "x"}}, place) == {"id": "7/x"}
    assert lifted(lacking, place) == {}
