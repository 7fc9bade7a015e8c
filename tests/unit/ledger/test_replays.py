"""A replay's way through the ledger: asked for, compared, agreed to, given up."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.replays import NOBODY
from spark_jobs.ledger.schema import Build, Replay, Run
from spark_jobs.ledger.store import LedgerError, Store

WANTED = {"origin": "raw", "views": [], "days": ["2026-03-01"], "lsns": []}
DIFFERS = {"view": "orders_by_day", "gone": 0, "new": 1, "other": 0}


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    opened = ledger.open()
    yield opened
    opened.close()


def ask(store: Store, run_id: str = "again", **wanted: object) -> Replay:
    return store.begin_replay(
        Replay(run_id=run_id, wanted=WANTED | wanted, reason="a test", asked_by="ada", preview={})
    )


def built(store: Store, run_id: str = "again") -> None:
    store.begin_run(Run(run_id=run_id, cut=5))
    numbers = {"cut": 5, "batch_version": 1, "row_count": 1, "seconds": 0.1}
    store.record_build(
        Build(run_id=run_id, view_id="v", mode="full", finished_at=datetime.now(UTC), horizon=None, **numbers)
    )
    store.progress(run_id, "build")


def test_a_name_asks_for_one_thing_and_is_no_other_runs(store: Store) -> None:
    ask(store)
    assert ask(store).asked_by == "ada"
    with pytest.raises(LedgerError, match="replay again wants something else"):
        ask(store, days=["2026-03-02"])
    store.begin_run(Run(run_id="r1", cut=5))
    with pytest.raises(LedgerError, match="a run is called r1"):
        ask(store, "r1")


def test_nobody_agrees_to_what_was_not_compared_and_the_first_word_stays(store: Store) -> None:
    ask(store)
    built(store)
    with pytest.raises(LedgerError, match="nothing to agree to yet"):
        store.approve_replay("again", "bob")
    store.record_differences("again", [DIFFERS])
    with pytest.raises(LedgerError, match="waits for approval"):
        store.refuse_unapproved("again")
    assert store.approve_replay("again", "bob").approved_by == "bob"
    assert store.approve_replay("again", "eve").approved_by == "bob"
    store.refuse_unapproved("again")
    store.refuse_unapproved("a run that is no replay")


def test_what_changes_nothing_needs_nobody(store: Store) -> None:
    ask(store)
    built(store)
    store.record_differences("again", [])
    assert store.asked_replay("again").approved_by == NOBODY
    store.refuse_unapproved("again")


def test_an_agreement_is_to_the_builds_that_were_compared(store: Store) -> None:
    ask(store)
    built(store)
    store.record_differences("again", [DIFFERS])
    store.approve_replay("again", "bob")
    with store.write() as session:
        session.get_one(Build, ("again", "v")).finished_at = datetime.now(UTC) + timedelta(seconds=1)
    with pytest.raises(LedgerError, match="was built again after it was compared"):
        store.refuse_unapproved("again")
    store.record_differences("again", [DIFFERS])
    with pytest.raises(LedgerError, match="waits for approval"):
        store.refuse_unapproved("again")


def test_what_is_given_up_goes_no_further_and_another_run_begins(store: Store) -> None:
    ask(store)
    built(store)
    store.cancel_replay("again", "bob")
    for refused in (
        lambda: store.approve_replay("again", "eve"),
        lambda: store.refuse_unapproved("again"),
        lambda: store.cancel_replay("again", "eve"),
    ):
        with pytest.raises(LedgerError, match="replay again was cancelled by bob"):
            refused()
    run = store.run("again")
    assert run is not None and (run.state, run.error) == ("superseded", "cancelled by bob")
    store.begin_run(Run(run_id="r2", cut=6))


@pytest.mark.parametrize("state", ["active", "failed"])
def test_a_build_that_is_given_up_ends_at_its_next_sign_of_life_and_stands_in_nobodys_way(
    store: Store, state: str
) -> None:
    ask(store)
    store.begin_run(Run(run_id="again", cut=5))
    if state == "failed":
        store.fail_run("again", "a disk was full")
    store.cancel_replay("again", "bob")
    for going_on in (
        lambda: store.progress("again"),
        lambda: store.progress("again", "build"),
        lambda: store.active_run("again"),
    ):
        with pytest.raises(LedgerError, match=r"superseded \(cancelled by bob\)"):
            going_on()
    store.record_audit("again", passed=False)
    run = store.run("again")
    assert run is not None and run.state == "superseded", "nor does its audit make it one that may go on"
    store.begin_run(Run(run_id="nightly", cut=6))


def test_what_was_given_up_is_not_published_by_whoever_had_looked_before(store: Store) -> None:
    ask(store)
    built(store)
    store.record_differences("again", [DIFFERS])
    store.approve_replay("again", "bob")
    store.refuse_unapproved("again")
    store.cancel_replay("again", "eve")
    with pytest.raises(LedgerError, match="replay again was cancelled by eve"):
        store.begin_publication("batch", {}, cut=5, run_id="again", promoted={"v": 2})
    assert (store.publications(), store.promoted()) == ([], {})


def test_what_is_published_is_not_given_up_but_rolled_back(store: Store) -> None:
    ask(store)
    built(store)
    store.record_differences("again", [])
    store.finish_publication(store.begin_publication("batch", {}, cut=5, run_id="again").id)
    with pytest.raises(LedgerError, match="replay again is publication 0: `tidemark batch rollback`"):
        store.cancel_replay("again", "bob")
