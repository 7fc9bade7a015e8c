"""Each alarm about runs, what they find and what they leave rings by its cause, and its end clears it."""

from dataclasses import asdict
from datetime import timedelta

import pytest
from sqlalchemy import delete

from spark_jobs.ledger.runs import AGREEMENT, UNEXPLAINED
from spark_jobs.ledger.schema import Replay, Run, Verification
from spark_jobs.ledger.store import Store
from spark_jobs.ledger.verifications import SAMPLE
from spark_jobs.quality.verification.findings import Finding, State
from spark_jobs.settings import settings
from spark_jobs.speed.status import Status
from tests.ringing import ringing


def audited(store: Store, run_id: str, *, passed: bool, **causes: int) -> None:
    """A run with the gate's verdict, and the rows of one view that differ."""
    store.begin_run(Run(run_id=run_id, cut=1))
    store.progress(run_id, "audit", **{AGREEMENT: [{"view": "orders_by_day", "causes": causes}]})
    store.record_audit(run_id, passed, docs_url="file:///docs")


def test_a_failed_gate_rings_until_a_later_run_passes(store: Store, status: Status) -> None:
    audited(store, "monday", passed=False)
    assert "run monday did not pass its audit" in ringing(store)["gate"]
    audited(store, "tuesday", passed=True)
    assert ringing(store) == {}


def test_a_run_that_failed_rings_until_it_goes_on_or_another_begins(store: Store, status: Status) -> None:
    store.begin_run(Run(run_id="monday", cut=1))
    store.fail_run("monday", "the disk was full")
    assert ringing(store) == {"run failed": "run monday failed after its step plan: the disk was full"}
    store.active_run("monday")
    assert ringing(store) == {}
    store.fail_run("monday", "the disk was full")
    store.begin_run(Run(run_id="tuesday", cut=1))
    assert ringing(store) == {}


def test_a_run_that_takes_too_long_rings_and_one_that_waits_for_people_does_not(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.begin_run(Run(run_id="monday", cut=1))
    assert ringing(store) == {}
    monkeypatch.setenv("TIDEMARK_RUN_ALARM_HOURS", "0")
    settings.cache_clear()
    assert "run monday began 0.0 hours ago; the last step that ended is plan" in ringing(store)["run late"]
    store.plan_stopped("again", "sales.py:1: it does not import")
    assert set(ringing(store)) == {"run late", "run failed"}
    store.progress("monday", "publish")
    store.begin_replay(Replay(run_id="again", wanted={}, reason="", asked_by="ada", preview={}))
    store.begin_run(Run(run_id="again", cut=1))
    assert ringing(store) == {}


def test_a_nightly_run_that_cannot_begin_rings_until_one_does(
    store: Store, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_RUN_MISSING_ALARM_HOURS", "0")
    settings.cache_clear()
    assert ringing(store) == {}, "nothing was ever published"
    store.finish_publication(store.begin_publication("initial", {}, cut=0).id)
    assert "no batch run has begun for 0.0 hours" in ringing(store)["run missing"]
    store.begin_run(Run(run_id="monday", cut=1))
    store.progress("monday", "publish")
    assert "no batch run has begun for 0.0 hours; the last one is monday" in ringing(store)["run missing"]
    monkeypatch.setenv("TIDEMARK_RUN_MISSING_ALARM_HOURS", "30")
    settings.cache_clear()
    assert ringing(store) == {}
    with store.write() as session:
        session.get_one(Run, "monday").started_at -= timedelta(hours=31)
    assert "for 31.0 hours; the last one is monday" in ringing(store)["run missing"]
    store.begin_run(Run(run_id="tuesday", cut=1))
    assert ringing(store) == {}


def verified(store: Store, code: int | None, **states: str) -> None:
    """A look that ended with an exit code, or was cut off."""
    look = store.begin_verification(SAMPLE, 1)
    for invariant, state in states.items():
        finding = Finding(invariant, "a sentence", State(state))
        store.record_finding(look.id, finding.key, asdict(finding))
    if code is not None:
        store.finish_verification(look.id, code)


def test_a_broken_promise_rings_until_a_look_finds_that_all_hold(store: Store, status: Status) -> None:
    verified(store, 0, I1="holds")
    assert ringing(store) == {}
    verified(store, 1, I1="holds", I3="breach", I7="breach")
    message = ringing(store)["verify"]
    assert "breach of I3, I7" in message
    for code in (None, 2):
        verified(store, code, I3="unable")
        assert ringing(store) == {"verify": message}, "one that could not look says nothing"
    with store.write() as session:
        session.execute(delete(Verification))
    assert ringing(store) == {"verify": message}, "an erasure forgets what was found"
    verified(store, 0, I3="holds")
    assert ringing(store) == {}


def test_unexplained_rows_ring_until_a_later_audit_has_none(store: Store, status: Status) -> None:
    audited(store, "monday", passed=False, **{UNEXPLAINED: 3})
    message = "3 rows differ from speed for no known cause (run monday)"
    assert ringing(store)["agreement: orders_by_day"] == message
    audited(store, "tuesday", passed=True, duplicate=3)
    assert ringing(store) == {}


def test_a_view_that_is_held_back_rings_until_a_run_publishes_it(store: Store, status: Status) -> None:
    audited(store, "monday", passed=True)
    store.progress("monday", "publish", held_back={"word_count": 7})
    assert ringing(store) == {"held back: word_count": "it keeps its old source: it has no speed partials at lsn 7"}
    audited(store, "tuesday", passed=True)
    assert ringing(store) == {}
