"""What the ledger keeps of an erasure, over tries that died, and what it forgets for one."""

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import URL

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.erasures import ENDED
from spark_jobs.ledger.runs import AGREEMENT
from spark_jobs.ledger.schema import Build, Erasure, HotKey, Run
from spark_jobs.ledger.store import Store
from spark_jobs.ledger.verifications import WHOLE
from spark_jobs.quality.verification.findings import Finding, Law, State

SUBJECT = "user4711"
ROW = f"user={SUBJECT}: orders 5 (batch) 6 (speed)"


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


def built(store: Store, run_id: str, version: int, *keys: str) -> None:
    """A run with a build of a view that has hot keys."""
    store.begin_run(Run(run_id=run_id, cut=version))
    numbers = {"cut": version, "batch_version": version, "results_version": version, "row_count": 1, "seconds": 0.1}
    build = Build(run_id=run_id, view_id="v", mode="full", horizon=None, finished_at=datetime.now(UTC), **numbers)
    hot = [HotKey(view_id="v", batch_version=version, digest=key[::-1], key=key, row_count=9) for key in keys]
    store.record_build(build, hot)


def published(store: Store, run_id: str, cut: int) -> None:
    made = store.begin_publication("batch", store.built_sources(run_id), cut=cut, run_id=run_id)
    store.finish_publication(made.id)
    store.progress(run_id, "publish")


def bytes_of(store: Store) -> bytes:
    """All files of the ledger."""
    file = Path(str(store.engine.url.database))
    return b"".join(each.read_bytes() for each in file.parent.glob(f"{file.name}*"))


def test_rows_that_an_audit_has_named_are_forgotten_and_their_counts_stay(store: Store) -> None:
    store.begin_run(Run(run_id="r1", cut=2))
    differs = {"view": "v", "rows": 9, "differing": 1, "causes": {"unexplained": 1}, "unexplained": [ROW]}
    store.progress("r1", "audit", **{AGREEMENT: [differs], "looked_at": ["v"]})
    store.forget_what_was_said("erasure 1")
    run = store.run("r1")
    assert run is not None and run.summary == {AGREEMENT: [differs | {"unexplained": []}], "looked_at": ["v"]}
    assert SUBJECT.encode() not in bytes_of(store)


def test_errors_and_alarms_are_cut_to_what_names_no_row(store: Store) -> None:
    store.begin_run(Run(run_id="manual__2026-03-01T00:00:00", cut=2))
    store.fail_run("manual__2026-03-01T00:00:00", f"v would be served otherwise than its files say (I20): {ROW}")
    store.settle_alarms({"run failed": f"run r1 failed after its step audit: v would be served otherwise: {ROW}"})
    store.begin_run(Run(run_id="r2", cut=2))
    store.fail_run("r2", "no file is there")
    store.begin_run(Run(run_id="r3", cut=2))
    for _ in range(2):
        store.forget_what_was_said("erasure 1")
    errors = {run.run_id: run.error for run in store.runs()}
    assert errors == {
        "manual__2026-03-01T00:00:00": "v would be served otherwise than its files say (I20) [cut by erasure 1]",
        "r2": "no file is there; then run r3 began",
        "r3": None,
    }
    assert [alarm.message for alarm in store.alarms(9)] == ["run r1 failed after its step audit [cut by erasure 1]"]
    assert SUBJECT.encode() not in bytes_of(store)


def test_hot_keys_of_versions_that_nobody_can_read_are_forgotten(store: Store) -> None:
    built(store, "r1", 1, SUBJECT, "bot")
    published(store, "r1", 1)
    built(store, "r2", 2, "bot")
    published(store, "r2", 2)
    store.expire_publications(datetime.now(UTC))
    store.forget_what_was_said("erasure 1")
    assert [key.key for key in store.hot_keys("v", 2)] == ["bot"] and store.hot_keys("v", 1) == []
    assert SUBJECT.encode() not in bytes_of(store)


def test_what_a_look_has_found_is_forgotten_also_of_one_that_was_cut_off(store: Store) -> None:
    """One that is at work, or is taken up again, goes on without it."""
    ended = store.begin_verification("sample", 1)
    store.record_finding(ended.id, "I3", {"rows": [ROW]})
    store.finish_verification(ended.id, 1)
    killed = store.begin_verification(WHOLE, 2)
    store.record_finding(killed.id, "I3", {"rows": [ROW]})
    store.forget_what_was_said("erasure 1")
    assert SUBJECT.encode() not in bytes_of(store)
    taken_up = store.begin_verification(WHOLE, 3)
    assert (taken_up.id, taken_up.findings) == (killed.id, {}), "all of it is looked at again"
    store.record_finding(killed.id, "I1", {"rows": []})


@pytest.mark.parametrize("is_finished", [False, True])
def test_what_a_look_finds_later_in_rows_that_it_had_read_before_is_counted_and_not_quoted(
    store: Store, *, is_finished: bool
) -> None:
    number, look = asked(store), store.begin_verification(WHOLE, 1)
    breach = Law("I3", "answers are right", "rows").finding(7, [ROW], note=ROW)
    store.record_finding(look.id, "before", asdict(breach))
    assert SUBJECT.encode() in bytes_of(store), "one that only waits takes nothing away"
    store.note_ended(number, ENDED, [])
    store.forget_what_was_said(f"erasure {number}")
    if is_finished:
        store.finish_erasure(number, {"erased": 2})
    store.record_finding(look.id, "later", asdict(breach))
    [found] = [Finding(**one) for one in store.begin_verification(WHOLE, 2).findings.values()]
    assert (found.state, found.checked, found.breaches) == (State.BREACH, 7, 1)
    assert SUBJECT.encode() not in bytes_of(store)


def test_what_a_look_finds_that_begins_after_an_erasure_is_quoted(store: Store) -> None:
    number = asked(store)
    store.note_ended(number, ENDED, [])
    store.finish_erasure(number, {"erased": 2})
    look = store.begin_verification(WHOLE, 1)
    store.record_finding(look.id, "I3", {"first": ["another row"], "note": "by the oracle"})
    assert store.begin_verification(WHOLE, 2).findings["I3"]["first"] == ["another row"]
