"""Contracts: what a schema file gives, and what it is refused for."""

import re

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import load_contracts, project_contracts
from spark_jobs.contracts.model import ENVELOPE, ContractError
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.decode.reasons import Reason
from spark_jobs.settings import ROOT
from tests.contract_files import SCHEMA, broken_examples, records, write


def test_every_schema_file_of_the_project_is_a_contract():
    known = project_contracts()
    assert set(known.event_types) >= {"order_placed", "page_viewed", "flight_departed", "airline_changed"}
    assert [c.event_type for c in known] == list(known.event_types)
    assert all(known.by_topic(c.topic) == (c.event_type,) for c in known if not c.is_outcome)
    assert known.by_topic("nobody_knows") == ()


def test_a_contract_says_its_fields_and_the_schema_of_its_facts():
    flight = project_contracts().of("flight_departed")
    fields = {f.name: f for f in flight.fields}
    assert flight.fact_schema.names == [*row_types.FACT.names, *fields]
    assert not fields.keys() & set(ENVELOPE)
    assert (fields["scheduled_at"].arrow, fields["flight"].arrow) == (row_types.INSTANT, pa.int64())
    assert (fields["carrier"].required, fields["tailnum"].required) == (True, False)


@pytest.mark.parametrize(
    "contract", [one for one in project_contracts() if not one.is_outcome], ids=lambda c: c.event_type
)
def test_its_good_examples_are_facts_and_each_bad_one_breaks_its_rule(contract):
    good, bad = contract.examples, broken_examples(contract)
    decoded = decode(records(contract.topic, [*good, *(value for value, _, _ in bad)]), project_contracts())
    assert decoded.facts[contract.event_type].num_rows == len(good)
    verdicts = zip(decoded.rejects["reason"].to_pylist(), decoded.rejects["field"].to_pylist(), strict=True)
    assert list(verdicts) == [(reason, field) for _, reason, field in bad]
    Draft202012Validator.check_schema(contract.schema)


def test_an_old_version_is_read_by_its_own_schema_into_the_newest_columns(tmp_path):
    write(tmp_path)
    write(tmp_path, version=2, fields={"mood": {"type": "string"}})
    known = load_contracts(tmp_path)
    assert [c.version for c in known.versions["heart_beaten"]] == [1, 2]
    old = {**SCHEMA["examples"][0], "note": "x"}
    new = {**SCHEMA["examples"][0], "mood": "calm", "beats": 60}
    for size in (1, 20):  # row by row, and in bulk
        facts = decode(
            pa.concat_tables([records("heart_beaten", [old] * size, version=1), records("heart_beaten", [new] * size)]),
            known,
        ).facts["heart_beaten"]
        assert facts.schema == known.of("heart_beaten").fact_schema
        assert sorted(facts["schema_version"].to_pylist()) == [1] * size + [2] * size
        assert facts["note"].null_count == size
        assert facts["beats"].null_count == 0 and facts["mood"].null_count == size


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"type": "array"}, '"type": "object"'),
        ({"x-tidemark": None}, "x-tidemark"),
        ({"x-tidemark": {"key": "beats", "owner": "o", "topik": "t"}}, "unknown in x-tidemark: topik"),
        ({"x-tidemark": {"key": "note", "owner": "o"}}, "key must name a required field"),
        ({"x-tidemark": {"key": "beats"}}, "owner"),
        ({"examples": []}, "example"),
        ({"additionalProperties": False}, "not supported, or required but no property: additionalProperties"),
        ({"required": ["beats", "event_type", "occurred_at", "mood"]}, "no property: mood"),
        ({"properties": 7}, "not a JSON Schema"),
        ({"required": ["beats", "event_type"]}, "occurred_at"),
        ({"fields": {"event_type": {"const": "other"}}}, "event_type must be"),
        ({"fields": {"occurred_at": {"type": "string"}}}, "format date-time"),
        ({"fields": {"lsn": {"type": "integer"}}}, "taken by the columns of every fact: lsn"),
        ({"fields": {"note": {"type": "object"}}}, "type must be one of"),
        ({"fields": {"note": {"type": ["string", "integer"]}}}, "type must be one of"),
        ({"fields": {"note": {"type": "string", "contentEncoding": "base64"}}}, "not supported: contentEncoding"),
        ({"fields": {"note": {"type": "string", "pattern": "abc"}}}, "the pattern must be"),
        ({"fields": {"note": {"type": "string", "pattern": r"^\d+$"}}}, "the pattern must be"),
        ({"fields": {"note": {"type": "string", "pattern": "^a|b$"}}}, "the pattern must be"),
        ({"fields": {"note": {"type": "string", "format": "email"}}}, "only format is date-time"),
        ({"fields": {"note": {"type": "string", "format": "date-time"}}}, "a date-time has the pattern"),
        ({"fields": {"note": {"type": "integer", "enum": [1, 2]}}}, "enum lists strings"),
        ({"fields": {"note": {"type": "integer", "minimum": 0.5}}}, "bounds of an integer"),
        ({"fields": {"deleted": {"type": "boolean"}}}, "deleted is for compacted topics"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_name_and_the_reason(tmp_path, change, complaint):
    write(tmp_path, **change)
    with pytest.raises(ContractError, match=complaint) as refused:
        load_contracts(tmp_path)
    assert "heart_beaten.v1.json" in str(refused.value)


def test_a_file_of_another_name_or_no_json_is_refused(tmp_path):
    (tmp_path / "HeartBeaten.json").write_text("{}")
    with pytest.raises(ContractError, match=r"HeartBeaten.json: the name must be"):
        load_contracts(tmp_path)
    (tmp_path / "HeartBeaten.json").rename(tmp_path / "heart_beaten.v1.json")
    (tmp_path / "heart_beaten.v1.json").write_text("{")
    with pytest.raises(ContractError, match=r"heart_beaten.v1.json: Expecting"):
        load_contracts(tmp_path)


@pytest.mark.parametrize(
    ("later", "complaint"),
    [
        ({"version": 3}, "v2 is missing"),
        ({"version": 2, "x-tidemark": {"key": "beats", "owner": "o", "topic": "t"}}, "topic, key and compacted never"),
        ({"version": 2, "fields": {"note": {"type": "integer"}}}, "field note has another type"),
    ],
)
def test_versions_that_do_not_follow_are_refused(tmp_path, later, complaint):
    write(tmp_path)
    write(tmp_path, **later)
    with pytest.raises(ContractError, match=complaint):
        load_contracts(tmp_path)


def test_an_empty_folder_and_a_shared_compacted_topic_are_refused(tmp_path):
    with pytest.raises(ContractError, match="no <event_type>"):
        load_contracts(tmp_path)
    for name in ("heart_beaten", "heart_stopped"):
        write(tmp_path, name=name, **{"x-tidemark": {"key": "beats", "owner": "o", "topic": "t", "compacted": True}})
    with pytest.raises(ContractError, match="compacted topic t carries more than one"):
        load_contracts(tmp_path)


def test_the_documentation_lists_every_reason():
    text = (ROOT / "docs" / "events.md").read_text("utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text.partition("## Rejects")[2], re.MULTILINE) == [*Reason]
