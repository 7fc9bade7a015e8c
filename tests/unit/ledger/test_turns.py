"""Runs that wait are merged into the one that begins: whatever dies and in whatever order, each day is done, or red."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import URL, delete, select, update

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Audit, Run, WaitingRun
from spark_jobs.ledger.store import LedgerError, Merged, RunActive, Store
from spark_jobs.ledger.turns import DAG_RUN, MERGEABLE, TAKEN_OVER


@pytest.fixture
def store() -> Iterator[Store]:
    opened = ledger.open(URL.create("sqlite+pysqlite", database=":memory:"))
    yield opened
    opened.close()


def asked(store: Store, number: int, cut_chosen_at: datetime | None = None) -> Run:
    """The run of day `number`, as its `plan` asks for its turn."""
    summary = {MERGEABLE: True, DAG_RUN: f"backfill__{number}"}
    return store.begin_run(Run(run_id=f"r{number}", days=[f"2026-01-0{number}"], cut=5, summary=summary), cut_chosen_at)


def waiting(store: Store, *numbers: int) -> None:
    for number in numbers:
        with pytest.raises(RunActive):
            asked(store, number)


def dies(store: Store) -> None:
    """The run at work gives no sign of life any more."""
    long_ago = datetime.now(UTC) - timedelta(days=1)
    with store.write() as session:
        session.execute(update(Run).where(Run.state == "active").values(progressed_at=long_ago))


def test_runs_that_wait_are_merged_into_the_one_that_begins(store: Store) -> None:
    asked(store, 1)
    waiting(store, 2, 3, 4)
    store.progress("r1", "publish")
    assert asked(store, 3).days == ["2026-01-02", "2026-01-03", "2026-01-04"]
    with pytest.raises(RunActive, match=r"run r3 \(backfill__3\) is active .* and does the days of this one as well"):
        asked(store, 2)
    store.progress("r3", "publish")
    for number in (2, 4):
        with pytest.raises(Merged, match=rf"run r{number} is merged into run r3 \(backfill__3\), .* nothing was new"):
            asked(store, number)
    assert asked(store, 5).days == ["2026-01-05"], "what is done is not done again"


def test_a_run_that_asked_after_the_cut_was_chosen_is_not_taken_over(store: Store) -> None:
    """Its records may have landed past that cut."""
    asked(store, 1)
    waiting(store, 2)
    before = datetime.now(UTC)
    waiting(store, 3)
    store.progress("r1", "publish")
    assert asked(store, 4, before).summary[TAKEN_OVER] == ["r2"]


def test_one_run_of_a_backfill_speaks_for_those_that_cannot_ask_yet(store: Store) -> None:
    before = datetime.now(UTC)
    first = Run(run_id="r1", days=["2026-01-01"], cut=5, summary={MERGEABLE: True})
    others = {f"r{number}": f"2026-01-0{number}" for number in (2, 3)}
    begun = store.begin_run(first, before, others)
    assert begun.days == ["2026-01-01", "2026-01-02", "2026-01-03"] and begun.summary[TAKEN_OVER] == ["r2", "r3"]
    with pytest.raises(RunActive, match="does the days of this one as well"):
        asked(store, 2)
    store.progress("r1", "publish")
    with pytest.raises(Merged):
        asked(store, 3)
    asked(store, 4)
    with pytest.raises(RunActive):
        store.begin_run(
            Run(run_id="r5", days=["2026-01-05"], cut=5, summary={MERGEABLE: True}), before, {"r6": "2026-01-06"}
        )
    assert {waiting.run_id for waiting in store.waiting_runs()} >= {"r5", "r6"}, "it speaks for them while it waits"
    with pytest.raises(RunActive):
        store.begin_run(Run(run_id="replay", days=[], cut=5), before, {"r7": "2026-01-07"})
    assert "r7" not in {waiting.run_id for waiting in store.waiting_runs()}


def test_the_days_of_a_run_that_failed_go_to_the_next_and_it_ends_with_that_one(store: Store) -> None:
    asked(store, 1)
    waiting(store, 2, 3)
    store.fail_run("r1", "the disk was full")
    assert asked(store, 2).days == ["2026-01-01", "2026-01-02", "2026-01-03"]
    with pytest.raises(RunActive):
        store.active_run("r1")  # its task is tried again
    dies(store)
    assert asked(store, 3).days == ["2026-01-01", "2026-01-02", "2026-01-03"]
    store.progress("r3", "publish")
    for run_id in ("r1", "r2"):
        with pytest.raises(Merged, match="merged into run r3"):
            store.active_run(run_id)


def test_days_that_an_audit_refused_together_are_built_one_by_one(store: Store) -> None:
    asked(store, 1)
    waiting(store, 2, 3, 4)
    store.progress("r1", "publish")
    asked(store, 2)
    store.record_audit("r2", False)
    assert asked(store, 3).days == ["2026-01-03"], "the day at fault is among them, nobody knows which"
    waiting(store, 5)
    store.progress("r3", "publish")
    assert asked(store, 4).days == ["2026-01-04", "2026-01-05"], "another one was not refused"
    with pytest.raises(LedgerError, match="superseded"):
        store.active_run("r2")


def test_a_run_of_another_kind_takes_nothing_over_and_is_never_merged(store: Store) -> None:
    asked(store, 1)
    with pytest.raises(RunActive):
        store.begin_run(Run(run_id="replay", days=["2026-01-09"], cut=5))
    waiting(store, 2)
    store.fail_run("r1", "killed")
    assert store.begin_run(Run(run_id="replay", days=["2026-01-09"], cut=5)).days == ["2026-01-09"]
    store.fail_run("replay", "cancelled")
    assert asked(store, 2).days == ["2026-01-01", "2026-01-02"]


ACTIONS = st.one_of(st.integers(1, 5), st.sampled_from(["dies", "fails", "is refused", "decodes", "ends"]))


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(ACTIONS, max_size=25))
@example([1, 2, 3, "fails", 2, "dies", 3, "is refused", 1, 2])
@example([2, 3, 4, "dies", 1, "ends", 5, "dies"])
def test_i10_a_day_waits_or_is_with_a_run_that_lives_whatever_dies(store: Store, actions: list[int | str]) -> None:
    """Each run asks for its turn again and again, as Airflow has it do; runs at work die in between."""
    refused = set[str]()
    with store.write() as session:
        for table in (Audit, WaitingRun, Run):
            session.execute(delete(table))
    for action in actions:
        at_work = next((run.run_id for run in store.runs() if run.state == "active"), None)
        if isinstance(action, int):
            state_of(store, action)
        elif at_work is not None:
            refused |= {at_work} if action == "is refused" else set()
            happen(store, at_work, action)
    for number in [*range(1, 6)] * 6 + [6]:  # the last one is the next night's
        if state_of(store, number) == "at work":
            store.progress(f"r{number}", "publish")
    done = {day for run in store.runs() if run.state == "finished" for day in run.days}
    for number in range(1, 6):
        state, day = state_of(store, number), f"2026-01-0{number}"
        assert state in ("done", "red")
        assert day in done or (state == "red" and refused), f"nobody built the day of run {number}"
    with store.read() as session:
        takers = {row.taken_by for row in session.scalars(select(WaitingRun))}
    assert takers <= {run.run_id for run in store.runs() if run.state == "finished" or run.run_id in refused}


def state_of(store: Store, number: int) -> str:
    """What comes of it when the run asks for its turn."""
    try:
        run = asked(store, number)
    except RunActive:
        return "waits"
    except Merged:
        return "done"
    except LedgerError:
        return "red"
    return "done" if run.state == "finished" else "at work"


def happen(store: Store, run_id: str, action: str) -> None:
    match action:
        case "dies":
            dies(store)
        case "fails":
            store.fail_run(run_id, "killed")
        case "is refused":
            store.record_audit(run_id, False)
        case _:
            store.progress(run_id, {"decodes": "decode"}.get(action, "publish"))
