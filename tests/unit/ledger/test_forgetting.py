"""The ledger forgets what is long over and what nothing refers to; what it keeps costs no more for being much."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, event, inspect, select, update

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import (
    Alarm,
    Audit,
    Build,
    Model,
    ModelPromotion,
    Publication,
    Replay,
    Run,
    Verification,
    now,
)
from spark_jobs.ledger.store import Store
from tests.bench import nights

LONG_AGO, BEFORE = now() - timedelta(days=4000), now() - timedelta(days=3650)


def night(store: Store, number: int, moment: datetime = LONG_AGO) -> None:
    """A run that built version `number`, was audited and published, all at that moment."""
    run_id, when = f"r{number}", moment + timedelta(minutes=number)
    store.begin_run(Run(run_id=run_id, cut=number))
    about: dict[str, Any] = {"mode": "full", "horizon": None, "results_version": None, "row_count": 1, "seconds": 0}
    store.record_build(Build(run_id=run_id, view_id="v", cut=number, batch_version=number, finished_at=when, **about))
    store.record_audit(run_id, True)
    store.finish_publication(
        store.begin_publication("batch", store.built_sources(run_id), cut=number, run_id=run_id).id
    )
    store.progress(run_id, "publish")
    with store.write() as session:
        session.get_one(Run, run_id).started_at = when
        session.execute(update(Publication).where(Publication.run_id == run_id).values(done_at=when))


def forget(store: Store) -> None:
    """As retention and the speed application do."""
    store.expire_publications(now() - timedelta(days=30))
    store.forget_builds(now() - timedelta(days=90))
    store.forget_history(BEFORE)


def kept(store: Store) -> tuple[list[str], list[int]]:
    runs = store.all(select(Run.run_id).order_by(Run.run_id))
    assert store.all(select(Audit.run_id).order_by(Audit.run_id)) == runs
    return runs, sorted(publication.id for publication in store.publications())


def test_d1_decisions_go_once_they_are_older_than_any_pin_may_be(store: Store) -> None:
    for number in range(4):
        night(store, number)
    night(store, 4, now() - timedelta(days=100))
    night(store, 5, now())
    forget(store)
    assert kept(store) == (["r4", "r5"], [4, 5]), "the last hundred days' are history, though nobody can read them"
    assert store.decoded_cut() == 5
    assert store.publication_at(LONG_AGO + timedelta(days=1)) is None, "nobody pins what is forgotten"
    night(store, 6, now())
    assert kept(store)[1] == [4, 5, 6], "ids go on"


def test_d1_what_a_pin_shows_stays_with_all_that_came_after_it(store: Store) -> None:
    for number in range(3):
        night(store, number)
    store.begin_pin("p", 1, 1, now())
    night(store, 3, now())
    forget(store)
    assert kept(store) == (["r1", "r2", "r3"], [1, 2, 3])
    assert store.sources(1)["v"].batch_version == 1
    assert sorted(build.batch_version for build in store.all(select(Build))) == [1, 3], "nothing shows version 2"
    store.drop_pin("p")
    forget(store)
    assert kept(store) == (["r3"], [3])


def test_d1_what_was_rolled_back_to_stays_however_old(store: Store) -> None:
    for number in range(3):
        night(store, number)
    store.finish_publication(store.begin_publication("rollback", store.sources(1), cut=1, restores=1).id)
    forget(store)
    assert kept(store) == (["r1", "r2"], [1, 2, 3])
    store.begin_run(Run(run_id="next", cut=9))
    assert [run.run_id for run in store.runs_since_base("next")] == ["r2", "next"]
    assert [run.run_id for run in store.runs_since_built("next", store.current_sources())["v"]] == ["r2", "next"]


def test_d1_versions_of_a_model_go_but_for_those_that_decide(store: Store) -> None:
    for version in range(1, 5):
        run_id = f"r{version}"
        store.begin_run(Run(run_id=run_id, cut=1))
        about = {"seconds": 1.0, "weights": {}, "metrics": {}, "reason": "better", "trained_at": LONG_AGO}
        store.record_model(Model(model="m", run_id=run_id, cut=1, is_accepted=version in (1, 2), **about))
        if version in (1, 2):
            store.finish_model_promotion("m", version)
        store.progress(run_id, "publish")
    with store.write() as session:
        session.execute(update(ModelPromotion).values(decided_at=LONG_AGO))
    forget(store)
    assert [model.version for model in store.models("m")] == [4, 2], "the newest, and the one in force"
    assert [decision.decision for decision in store.model_promotions("m")] == [2]
    assert store.intend_model_promotion("m", 4, "by hand").decision == 3


def test_d1_looks_at_the_promises_and_alarms_go(store: Store) -> None:
    looks = [store.begin_verification("sample", seed).id for seed in range(3)]
    store.settle_alarms({"lag: a": "late", "lag: b": "late"})
    store.settle_alarms({"lag: b": "late"})
    with store.write() as session:
        session.execute(update(Verification).where(Verification.id < looks[2]).values(begun_at=LONG_AGO))
        session.execute(update(Alarm).values(raised_at=LONG_AGO))
    store.forget_messages(now())
    forget(store)
    assert [look.id for look in store.all(select(Verification))] == looks[2:]
    assert [alarm.name for alarm in store.alarms(9)] == ["lag: b"], "what rings stays"


def test_d1_replays_go_with_their_runs(store: Store) -> None:
    for run_id in ("r0", "r1", "only planned", "new"):
        wanted = Replay(run_id=run_id, wanted={}, reason="a test", asked_by="ada", preview={})
        wanted.asked_at = now() if run_id == "new" else LONG_AGO
        store.begin_replay(wanted)
    night(store, 0)
    night(store, 1, now())
    forget(store)
    assert {replay.run_id for replay in store.replays()} == {"r1", "new"}


def sqlite(folder: Path) -> Store:
    return ledger.open(URL.create("sqlite+pysqlite", database=str(folder / "ledger.db")))


def test_d1_a_ledger_of_before_gets_its_indexes(tmp_path: Path) -> None:
    store = sqlite(tmp_path)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX ix_runs_state")
    store.close()
    store = sqlite(tmp_path)
    assert "ix_runs_state" in {index["name"] for index in inspect(store.engine).get_indexes("runs")}
    store.close()


GROWING = tuple(f"SCAN {name}" for name in ("run", "build", "audit", "publication", "verif", "alarm", "hot_key"))
"""How the plan of a query begins that reads all of a table."""


@pytest.mark.parametrize("question", [name for name in nights.QUESTIONS if name != nights.COUNTED])
def test_d1_what_is_asked_again_and_again_reads_no_table_that_grows(tmp_path: Path, question: str) -> None:
    store, asked = sqlite(tmp_path), list[tuple[str, Any]]()
    nights.fill(store, 40)
    event.listen(store.engine, "before_cursor_execute", lambda *sent: asked.append((sent[2], sent[3])))
    ask: Callable[[Store], object] = nights.QUESTIONS[question]
    ask(store)
    with store.engine.connect() as connection:
        plans = [
            (row[3], "LIMIT" in statement)
            for statement, parameters in list(asked)
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]
    store.close()
    whole = [plan for plan, is_limited in plans if plan.startswith("USE TEMP") and is_limited]
    whole += [plan for plan, is_limited in plans if plan.startswith(GROWING) and not is_limited]
    assert plans and not whole
