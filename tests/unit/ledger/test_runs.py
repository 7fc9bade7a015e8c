"""The ledger's runs: one at a time, by one process."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update

from spark_jobs.ledger import leases, runs
from spark_jobs.ledger.leases import LeaseLost
from spark_jobs.ledger.schema import Build, HotKey, Publication, Run, now
from spark_jobs.ledger.store import Busy, LedgerError, RunActive, Store


def plan(store: Store, run_id: str, cut: int = 5) -> Run:
    return store.begin_run(Run(run_id=run_id, cut=cut, cut_at=datetime.now(UTC)))


def test_a_retry_gets_the_first_plan(store: Store) -> None:
    plan(store, "r1", cut=5)
    store.fail_run("r1", "the disk was full")
    again = plan(store, "r1", cut=9)
    assert (again.cut, again.state, again.error) == (5, "active", None)


def test_only_one_run_is_active(store: Store) -> None:
    plan(store, "r1")
    with pytest.raises(RunActive, match="run r1 is active"):
        plan(store, "r2")
    store.progress("r1", "publish")
    assert plan(store, "r2").state == "active"


def test_a_stale_run_is_superseded_and_can_do_nothing_more(store: Store) -> None:
    plan(store, "r1")
    with store.write() as session:
        session.execute(update(Run).values(progressed_at=datetime.now(UTC) - timedelta(days=1)))
    plan(store, "r2")
    for act in (
        lambda: store.progress("r1", "build"),
        lambda: store.active_run("r1"),
        lambda: plan(store, "r1"),
    ):
        with pytest.raises(LedgerError, match="superseded"):
            act()


def test_a_failed_run_may_be_retried_until_another_begins(store: Store) -> None:
    plan(store, "r1")
    store.fail_run("r1", "the disk was full")
    assert store.active_run("r1").state == "active"
    store.record_audit("r1", False)
    plan(store, "r2")
    with pytest.raises(LedgerError, match="superseded \\(the audit did not pass"):
        store.active_run("r1")


def test_maintenance_and_runs_exclude_each_other(store: Store) -> None:
    plan(store, "r1")
    with pytest.raises(RunActive), store.maintenance("retention"):
        pass
    store.fail_run("r1", "x")
    with store.maintenance("retention"), pytest.raises(RunActive, match="retention"):
        store.active_run("r1")
    assert store.active_run("r1").state == "active"
    assert len(store.runs()) == 1


def test_runs_since_the_base_follow_rollbacks(store: Store) -> None:
    for run_id in ("r1", "r2"):
        plan(store, run_id)
        publication = store.begin_publication("batch", {}, cut=5, run_id=run_id)
        store.finish_publication(publication.id)
        store.progress(run_id, "publish")
    plan(store, "r3")
    assert [run.run_id for run in store.runs_since_base("r3")] == ["r3"]
    store.finish_publication(store.begin_publication("rollback", {}, cut=5, restores=0).id)
    assert [run.run_id for run in store.runs_since_base("r3")] == ["r2", "r3"]


def test_the_decoded_cut_is_that_of_runs_whose_decode_ended(store: Store) -> None:
    plan(store, "r1", cut=5)
    assert store.decoded_cut() == 0
    store.progress("r1", "decode")
    store.fail_run("r1", "later")
    plan(store, "r2", cut=8)
    assert store.decoded_cut() == 5


def test_a_retried_build_replaces_its_row(store: Store) -> None:
    plan(store, "r1")
    for version in (1, 2):
        store.record_build(
            Build(
                run_id="r1",
                view_id="v",
                mode="full",
                cut=5,
                horizon=None,
                batch_version=version,
                results_version=None,
                row_count=1,
                seconds=0.1,
                finished_at=datetime.now(UTC),
            )
        )
    assert [(b.view_id, b.batch_version) for b in store.builds("r1").values()] == [("v", 2)]


def test_the_newest_verdict_counts(store: Store) -> None:
    plan(store, "r1")
    store.record_audit("r1", False, docs_url="file:///docs")
    store.record_audit("r1", True, 2)
    audit = store.audit("r1")
    assert audit is not None and (audit.passed, audit.warnings) == (True, 2)


def test_b11_one_process_writes_for_a_run_also_if_another_has_its_id(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "WRITER_PATIENCE_SECONDS", 0.0)
    plan(store, "r1")
    with store.writing("r1") as first, pytest.raises(Busy, match="facts and batch tables"), store.writing("r1"):
        pass
    with store.writing("r1") as second:
        assert second.number == first.number + 1
        with pytest.raises(LeaseLost):
            first.renew()


def test_b11_a_run_whose_process_lives_is_not_superseded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "SECONDS", 0.06)
    plan(store, "r1")
    with store.write() as session:
        session.execute(update(Run).values(progressed_at=(long_ago := datetime.now(UTC) - timedelta(days=1))))
    with store.writing("r1"):
        while (run := store.run("r1")) is None or run.progressed_at == long_ago:
            pass  # its sign of life comes by itself
        with pytest.raises(RunActive, match="run r1 is active"):
            plan(store, "r2")


def test_b11_what_a_stopped_process_held_is_free_at_once(store: Store) -> None:
    plan(store, "r1")
    with store.holding("x") as held:
        store.give_back_all()
        with pytest.raises(LeaseLost), store.holding("x", patience=0):
            held.renew()


def test_d1_builds_and_hot_keys_that_no_publication_can_show_are_forgotten(store: Store) -> None:
    for version in (1, 2, 3):
        plan(store, f"r{version}")
        about = {"mode": "full", "cut": version, "horizon": None, "results_version": None, "row_count": 1}
        build = Build(run_id=f"r{version}", view_id="v", batch_version=version, **about, seconds=0, finished_at=now())
        store.record_build(build, [HotKey(view_id="v", batch_version=version, digest="d", key="k", row_count=9)])
        publication = store.begin_publication("batch", store.built_sources(f"r{version}"), cut=version)
        store.finish_publication(publication.id)
        store.progress(f"r{version}", "publish")
    assert store.lowest_live_cut() == 1
    with store.write() as session:
        session.get_one(Publication, 0).state = "expired"
    assert store.lowest_live_cut() == 2
    store.forget_builds(now())
    assert [build.batch_version for build in store.all(select(Build).order_by(Build.batch_version))] == [2, 3]
    assert [key.batch_version for key in store.all(select(HotKey).order_by(HotKey.batch_version))] == [2, 3]
