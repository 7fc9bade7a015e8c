"""What the ledger keeps of an erasure, over tries that died, and what it forgets for one."""

from pathlib import Path

import pytest
from sqlalchemy import URL

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Erasure
from spark_jobs.ledger.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return ledger.open(URL.create("sqlite+pysqlite", database=str(tmp_path / "ledger.db")))


def asked(store: Store, *requests: int) -> int:
    told = {"kind": "user", "reason": "a test", "asked_by": "ada", "records": 2, "first_lsn": 3}
    return store.begin_erasure(Erasure(**told, requests=[*requests]))


def test_what_a_try_that_died_has_ended_is_not_forgotten(store: Store) -> None:
    number = asked(store)
    store.note_ended(number, "pins", ["monday"])
    assert store.ended_by_erasure("monday") == number and store.ended_by_erasure("tuesday") is None
    store.note_ended(number, "pins", [])
    store.note_ended(number, "publications", [1])
    outcome = store.finish_erasure(number, {"erased": 2})
    assert outcome == {"pins": ["monday"], "publications": [1], "erased": 2}
    assert store.open_erasures() == []


def test_it_knows_its_lsn_when_all_of_it_has_landed_and_is_over_where_some_could_not(store: Store) -> None:
    requests = [store.request("revise", name=name, rows="") for name in ("a", "b", "c")]
    number, refused = asked(store, *requests[:2]), asked(store, requests[2])
    store.answer_request(requests[0], {"lsn": 7})
    assert [(one.id, one.lsn) for one in store.open_erasures()] == [(number, None), (refused, None)]
    store.answer_request(requests[1], {"lsn": 8})
    store.answer_request(requests[2], {"error": "no room"}, failed=True)
    assert [(one.id, one.lsn) for one in store.open_erasures()] == [(number, 8)]
    assert store.erasures()[0].outcome == {"error": "no room"}


def test_contents_of_what_was_asked_for_are_forgotten_once_it_is_answered(store: Store) -> None:
    answered, waiting = (store.request("revise", name=name, rows="bytes") for name in ("a", "b"))
    store.answer_request(answered, {"lsn": 7})
    store.forget_what_was_said("erasure 1")
    known = store.answered(answered)
    assert known is not None and known.arguments == {"name": "a"}
    again = store.next_request("revise")
    assert again is not None and (again.id, again.arguments["rows"]) == (waiting, "bytes")
