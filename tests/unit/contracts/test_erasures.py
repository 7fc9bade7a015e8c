"""Whose records can be erased: what a schema may say, whom a text names, and which bytes are about them."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from spark_jobs.contracts import erasures, row_types
from spark_jobs.contracts.erasures import NoSubject, Subject, subject_of
from spark_jobs.contracts.loader import load_contracts, project_contracts
from spark_jobs.contracts.model import ContractError
from spark_jobs.contracts.schema_history import _differences
from tests import contract_files

ABOUT_SEVEN = [
    b'{"user_id": 7}', b'{"user_id":7,"x":1}', b'{"user_id" :\n 7 , "x": 1}', b'{"person_id": 7}', b'{"user_id": "7"}',
    b'{"after": {"user_id": 7, "id": 1}}', b'{"user_id": 7', b'[{"user_id": 7}]', b'\xff{"user_id": 7}',
]  # fmt: skip
ABOUT_OTHERS = [
    b'{"user_id": 70}', b'{"user_id": 17}', b'{"user_id": 7.5}', b'{"user_id": -7}', b'{"comp_id": 7}',
    b'{"x": "user_id"}', b'{"order": {"quantity": 7, "user_id": 8}}', b"7", b"", b'{"user_id": "7x"}',
]  # fmt: skip


@pytest.mark.parametrize("value", [*ABOUT_SEVEN, *ABOUT_OTHERS])
def test_bytes_are_about_whom_a_subject_field_names(value: bytes) -> None:
    pattern = Subject("user", "7").pattern(project_contracts())
    [found] = pc.match_substring_regex(pa.array([value], pa.binary()), pattern).to_pylist()
    assert found == (value in ABOUT_SEVEN)


def test_a_text_is_searched_as_json_writes_it() -> None:
    card = Subject("card", 'a.b"c\\é')
    values = [json.dumps({"card_id": text}, ensure_ascii=False).encode() for text in (card.value, 'axb"c\\é')]
    found = pc.match_substring_regex(pa.array(values, pa.binary()), card.pattern(project_contracts()))
    assert found.to_pylist() == [True, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("customer=7", "'customer' is no kind of subject: the schemas' x-subject names card, skier, user"),
        ("7", "'7' is no kind of subject"),
        ("user=", "write user=VALUE"),
    ],
)
def test_a_text_that_names_nobody_is_refused_by_what_there_is(text: str, said: str) -> None:
    with pytest.raises(NoSubject, match=said):
        subject_of(text, project_contracts())


@pytest.mark.parametrize(
    ("kind", "rules", "said"),
    [
        ("User", {}, "field user_id: x-subject is a name in lower case, such as user, not 'User'"),
        ("user", {"type": "number"}, "field user_id: x-subject is for texts and integers"),
    ],
)
def test_a_schema_says_it_in_one_form(tmp_path: Path, kind: str, rules: dict[str, str], said: str) -> None:
    contract_files.write(tmp_path, fields={"user_id": {"type": "integer", **rules, "x-subject": kind}})
    with pytest.raises(ContractError, match=said):
        load_contracts(tmp_path)


def test_it_may_be_added_to_a_schema_that_is_in_force() -> None:
    before = {"properties": {"user_id": {"type": "integer"}}}
    now = {"properties": {"user_id": {"type": "integer", "x-subject": "user"}}}
    assert [*_differences(before, now)] == []


def test_a_blanked_row_tells_its_erasure_and_nothing_else() -> None:
    record = {"lsn": 1, "topic": "t", "partition": 0, "offset": 3, "kind": "record", "key": b"7", "value": b"{}"}
    rows = pa.Table.from_pylist([record, {**record, "value": None}, {**record, "headers": []}], row_types.LOG)
    blanked = erasures.blanked(rows, [9, 9, 9])
    assert erasures.is_blanked(blanked) == [0, 1, 2] and erasures.is_blanked(rows) == []
    delete = {**record, "value": None, "headers": [{"key": erasures.MARK, "value": b"9"}]}
    assert erasures.is_blanked(pa.Table.from_pylist([delete], row_types.LOG)) == [], "a producer's, of its own key"
    [row, *_] = blanked.select(["key", "value", "headers", "offset"]).to_pylist()
    assert row == {"key": None, "value": None, "headers": [{"key": erasures.MARK, "value": b"9"}], "offset": 3}
