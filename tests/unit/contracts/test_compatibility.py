"""A schema that could refuse or lose what an older one allowed is refused; the newest reads each version's bytes."""

import json
from typing import Any

import pytest

from spark_jobs.contracts import compatibility
from spark_jobs.contracts.loader import load_contracts, project_contracts
from spark_jobs.contracts.model import Contract, ContractError
from spark_jobs.engine.decode.assemble import decode
from tests.contract_files import records, write

TEXT = {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"}
NUMBER = {"type": "integer", "minimum": 1, "maximum": 9}
CHOICE = {"type": "string", "enum": ["a", "b"]}


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (TEXT, {**TEXT, "minLength": 3}, "a greater minLength"),
        (TEXT, {**TEXT, "maxLength": 4}, "a smaller maxLength"),
        (TEXT, {**TEXT, "pattern": "^[a-c]+$"}, "another pattern"),
        ({"type": "string"}, {"type": "string", "pattern": "^[a-c]+$"}, "another pattern"),
        ({"type": "string"}, {"type": "string", "maxLength": 9}, "a smaller maxLength"),
        (NUMBER, {**NUMBER, "minimum": 2}, "a greater minimum"),
        (NUMBER, {**NUMBER, "maximum": 8}, "a smaller maximum"),
        (CHOICE, {"type": "string", "enum": ["a"]}, "takes fewer values"),
        ({"type": "string"}, CHOICE, "takes fewer values"),
        ({"type": ["string", "null"]}, {"type": "string"}, "may not be null"),
        (NUMBER, {"type": "number"}, "another type"),
    ],
)
def test_a_narrower_rule_is_refused(tmp_path, before: dict[str, Any], after: dict[str, Any], what: str) -> None:
    write(tmp_path, fields={"x": before})
    write(tmp_path, version=2, fields={"x": after})
    with pytest.raises(ContractError, match=rf"heart_beaten.v2.json: field x .*{what}.*, unlike in v1"):
        load_contracts(tmp_path)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT, {"type": ["string", "null"], "minLength": 1, "maxLength": 6}),
        (NUMBER, {"type": "integer", "minimum": 0}),
        (CHOICE, {"type": "string", "enum": ["a", "b", "c"]}),
        (CHOICE, {"type": "string"}),
    ],
)
def test_a_wider_rule_is_taken(tmp_path, before: dict[str, Any], after: dict[str, Any]) -> None:
    write(tmp_path, fields={"x": before})
    write(tmp_path, version=2, fields={"x": after})
    assert load_contracts(tmp_path).of("heart_beaten").version == 2


def test_a_field_stays_and_does_not_become_required(tmp_path) -> None:
    write(tmp_path)
    write(tmp_path, version=2, drop=["note"])
    with pytest.raises(ContractError, match="field note is gone"):
        load_contracts(tmp_path)
    write(tmp_path, version=2, fields={"x": NUMBER}, required=["event_type", "occurred_at", "beats", "x"])
    with pytest.raises(ContractError, match="field x is required, unlike in v1"):
        load_contracts(tmp_path)


def test_every_older_version_counts(tmp_path) -> None:
    """v3 undoes what v2 allowed, though v1 had it so."""
    write(tmp_path, fields={"x": NUMBER})
    write(tmp_path, version=2, fields={"x": {"type": "integer"}})
    write(tmp_path, version=3, fields={"x": NUMBER})
    with pytest.raises(ContractError, match=r"v3.json: field x has a greater minimum, unlike in v2"):
        load_contracts(tmp_path)


OLD = [one for one in project_contracts().every if not one.is_outcome]


@pytest.mark.parametrize("contract", OLD, ids=lambda one: f"{one.event_type}.v{one.version}")
@pytest.mark.parametrize("stated", [True, False], ids=["stated", "not stated"])
def test_the_newest_reader_reads_the_bytes_of_each_version(contract: Contract, stated: bool) -> None:
    events = [json.dumps(example).encode() for example in contract.examples]
    found = decode(records(contract.topic, events, contract.version if stated else None), project_contracts())
    assert found.rejects.num_rows == 0
    facts = found.facts[contract.event_type].to_pylist()
    newest = project_contracts().of(contract.event_type)
    assert len(facts) == len(events)
    for fact, example in zip(facts, contract.examples, strict=True):
        assert fact["schema_version"] == (contract.version if stated else newest.version)
        own = {field.name for field in newest.fields} & example.keys()
        assert {name: fact[name] for name in own if isinstance(example[name], int | float)} == {
            name: example[name] for name in own if isinstance(example[name], int | float)
        }


def test_two_versions_lie_in_one_topic_beside_each_other() -> None:
    """v1 has no device; a record of v1 that names one keeps it out of the facts."""
    known = project_contracts()
    first, second = known.versions["page_viewed"]
    both = [*first.examples, {**second.examples[0], "device": "tablet"}]
    new = decode(records("page_viewed", both, 2), known).facts["page_viewed"]
    assert new["device"].to_pylist() == [None, None, "tablet"]
    old = decode(records("page_viewed", both, 1), known).facts["page_viewed"]
    assert old["device"].to_pylist() == [None, None, None]
    assert not list(compatibility.broken((first, second))) and list(compatibility.broken((second, first)))
