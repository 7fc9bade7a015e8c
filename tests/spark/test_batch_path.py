"""The batch layer over a real log: cut, facts, builds, publication, and the laws that bind them."""

import threading
from typing import Any

import pytest

from spark_jobs.batch import decode_step
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.publication.rollback import rollback
from spark_jobs.speed import compaction, tiers, trimming
from spark_jobs.storage import tables
from spark_jobs.storage.fencing import Fence
from tests.publishing import publish
from tests.spark.days import DAY1, DAY2, counts, facts, order, page
from tests.spark.lake import Lake, event

pytestmark = pytest.mark.spark


def test_publishing_changes_no_answer_and_what_lands_later_is_added(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1), order(2), order(3, DAY2)])
    ensure_serving(lake.rows, lake.views, lake.store)
    served = "SELECT * FROM serving.orders_by_day"
    before = lake.rows(served)
    assert [row[2] for row in before] == [2, 1]
    publication = lake.run("r1")
    assert publication is not None and publication.cut == 1
    assert lake.rows(served) == before
    lake.land([order(4)])
    assert [row[2] for row in lake.rows(served)] == counts(lake) == [3, 1]


def test_each_record_is_a_fact_or_quarantined_or_a_counted_duplicate(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1), order(1), order(2), b"{", b"\xff"], topic="order_placed")
    lake.run("r1")
    lake.land([order(2), order(3), order(3)])
    lake.run("r2")
    assert len(facts(lake)) == 3
    reasons = lake.stored(tables.QUARANTINE, "offset", "reason", "state")
    assert [(row[0], row[2]) for row in reasons] == [(3, "quarantined"), (4, "quarantined")]
    assert lake.stored(tables.DUPLICATES, "lsn", "offset") == [(1, 1), (2, 5), (2, 7)]
    assert counts(lake) == [3]


def test_a_run_with_nothing_new_publishes_nothing(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1)])
    first = lake.run("r1")
    assert lake.run("r2") is None
    current = lake.store.current_publication()
    assert first is not None and current is not None and current.id == first.id
    run = lake.store.run("r2")
    assert run is not None and run.state == "finished"
    assert "nothing is new at cut 1" in lake.lines[-1]


def test_a_forced_day_of_unchanged_input_changes_nothing(lake: Lake) -> None:
    lake.use("orders_by_day", "word_count")
    lake.land([order(1), order(2, DAY2), b"no json", event("sentence_posted", 9)], topic="order_placed")
    lake.land([order(3), order(1)])
    lake.run("r1")
    watched = [tables.facts("order_placed"), tables.QUARANTINE, tables.DUPLICATES, "batch.orders_by_day"]
    before = {table: lake.stored(table) for table in watched}
    assert all(before.values())
    publication = lake.run("r2", days=[DAY1])
    assert publication is not None and publication.cut == 2, "the day was rebuilt and published, at the same cut"
    assert {table: lake.stored(table) for table in watched} == before
    assert lake.store.builds("r2")["orders_by_day"].mode == "buckets"
    assert lake.store.builds("r2")["word_count"].mode == "same"


def test_a_forced_day_mends_its_facts_and_every_view_over_them(lake: Lake) -> None:
    lake.use("orders_by_day", "trades")
    lake.land([order(1), order(2), order(3, DAY2)])
    lake.run("r1")
    right = facts(lake), lake.served("orders_by_day"), lake.served("trades")
    lake.lose(tables.facts("order_placed"), "event_id LIKE '%2'")
    lake.run("broken", mode="full")
    assert counts(lake) == [1, 1]
    lake.run("r2", days=[DAY1])
    assert (facts(lake), lake.served("orders_by_day"), lake.served("trades")) == right
    run = lake.store.run("r2")
    assert run is not None and run.summary["changed_days"] == {"order_placed": [DAY1]}


def test_a_retry_after_a_crash_between_two_tables_leaves_what_one_try_would(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.use("orders_by_day")
    lake.land([order(1), order(1), b"{"], topic="order_placed")
    lake.plan("r1")
    real = decode_step.Tables.replace

    def crash_at_the_end(read: decode_step.Tables, table: str, *others: Any) -> None:
        if table == tables.DUPLICATES:
            raise OSError("killed")
        real(read, table, *others)

    monkeypatch.setattr(decode_step.Tables, "replace", crash_at_the_end)
    with pytest.raises(OSError, match="killed"):
        lake.build("r1")
    monkeypatch.undo()
    lake.land([order(2)])
    lake.store.fail_run("r1", "killed")
    publication = lake.run("r1")
    assert publication is not None and publication.cut == 1, "the retry kept the cut of the first try"
    assert len(facts(lake)) == 1
    assert len(lake.stored(tables.QUARANTINE)) == 1
    assert len(lake.stored(tables.DUPLICATES)) == 1
    assert counts(lake) == [2]


def test_a_failed_audit_publishes_nothing_and_leaves_nothing_behind(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1)])
    first = lake.run("r1")
    lake.land([order(2), order(3, DAY2)])
    lake.plan("r2")
    lake.build("r2")
    with pytest.raises(PublishRefused, match="not audited"):
        lake.publish("r2")
    lake.spoil("batch.orders_by_day", orders="99")
    lake.store.record_audit("r2", passed=False, docs_url="/docs")
    with pytest.raises(PublishRefused, match="audit of run r2 failed"):
        lake.publish("r2")
    current = lake.store.current_publication()
    assert first is not None and current is not None and current.id == first.id
    assert counts(lake) == [2, 1]
    lake.land([order(4, DAY2)])
    lake.run("r3")
    assert counts(lake) == [2, 2]
    assert lake.stored("batch.orders_by_day", "orders") == [(2,), (2,)]


def test_rollback_serves_an_earlier_publication_until_the_next_run(lake: Lake) -> None:
    lake.use("orders_by_day")
    lake.land([order(1)])
    first = lake.run("r1")
    lake.land([order(2)])
    lake.run("r2")
    assert first is not None
    back = rollback(lake.rows, lake.views, lake.store)
    assert (back.restores, back.cut) == (first.id, 1)
    served = "SELECT orders FROM serving.orders_by_day"
    assert lake.rows(served) == [(2,)], "what the older build lacks comes from the speed layer"
    with pytest.raises(PublishRefused, match="publication 99 is not there"):
        rollback(lake.rows, lake.views, lake.store, to=99)
    lake.land([order(3)])
    last = lake.run("r3")
    assert last is not None and last.cut == 3
    assert lake.rows(served) == [(3,)]


def test_an_interrupted_publication_is_rolled_forward(lake: Lake) -> None:
    lake.use("orders_by_day", "word_count")
    lake.land([order(1), event("sentence_posted", 2)])
    lake.run("r1")
    lake.land([order(3), event("sentence_posted", 4)])
    lake.plan("r2")
    lake.build("r2")
    lake.store.record_audit("r2", passed=True)

    def crash_in_the_middle(statement: str) -> Any:
        if "serving.word_count AS" in statement:
            raise OSError("killed")
        return lake.rows(statement)

    with pytest.raises(OSError, match="killed"):
        publish(crash_in_the_middle, lake.views, lake.store, "r2")
    ensure_serving(lake.rows, lake.views, lake.store)
    current, run = lake.store.current_publication(), lake.store.run("r2")
    assert current is not None and (current.run_id, current.state) == ("r2", "done")
    assert run is not None and run.state == "finished"
    assert lake.rows("SELECT orders FROM serving.orders_by_day") == [(2,)]
    example = project_contracts().of("sentence_posted").examples[0]
    assert lake.rows("SELECT sum(occurrences) FROM serving.word_count") == [(2 * len(example["text"].split()),)]


def test_sequences_changed_equal_full_also_for_rows_before_the_horizon(lake: Lake) -> None:
    lake.use("sessions", "bus_latest")
    lake.land([page(1, DAY1, "09:00:00"), page(2, DAY1, "09:20:00"), page(3, DAY1, "12:00:00", user=8)])
    lake.run("r1")
    lake.land([page(4, "2026-01-20", "10:00:00"), page(5, "2026-01-20", "10:10:00", user=9)])
    lake.run("r2")
    build = lake.store.builds("r2")["sessions"]
    assert build.mode == "resolve" and build.horizon is not None
    lake.land([page(6, DAY1, "09:40:00"), page(7, "2026-01-20", "10:20:00"), page(8, DAY1, "12:10:00", user=10)])
    late = [(row[0], row[3]) for row in lake.served("sessions")]
    assert late == [(7, 2), (7, 2), (8, 1), (9, 1)], "rows before the horizon wait for the next build"
    lake.run("r3")
    assert lake.store.builds("r3")["sessions"].mode == "resolve"
    changed = {t: lake.stored(f"batch.{t}") for t in ("sessions_rows", "sessions_results")}
    assert [(row[0], row[3]) for row in lake.served("sessions")] == [(10, 1), (7, 2), (7, 3), (8, 1), (9, 1)]
    lake.run("r4", mode="full")
    assert {table: lake.stored(f"batch.{table}") for table in changed} == changed


def test_i6_no_count_falls_whatever_is_published_compacted_trimmed_or_rolled_back(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "MANY_COMMITS", 1)
    lake.use("orders_by_day", "sessions")
    numbers, seen = iter(range(1000)), [(0, 0)]

    def land() -> None:
        one = next(numbers)
        lake.land([order(one), order(50 + one, DAY2, store_id=2), page(500 + one, DAY1, f"{one:02d}:00:00")])

    def look() -> None:
        [(pages,)] = lake.ask("SELECT coalesce(sum(pages), 0) FROM sessions")
        seen.append((sum(counts(lake)), pages))

    land()
    ensure_serving(lake.rows, lake.views, lake.store)
    steps = [
        look,
        land,
        lambda: compaction.compact(threading.Lock(), Fence(1)),
        lambda: lake.run("r1"),
        land,
        lambda: trimming.trim(1, threading.Lock(), Fence(1)),
        lambda: lake.run("r2", mode="full"),
        lambda: rollback(lake.rows, lake.views, lake.store),
        land,
        lambda: lake.run("r3", days=[DAY1]),
    ]
    for step in steps:
        step()
        look()
    assert seen == sorted(seen), "a count fell"
    assert sorted(set(seen)) == [(0, 0), (2, 1), (4, 2), (6, 3), (8, 4)], "each counts once, as soon as it lands"
