"""Publishing as statements: what is created, what is altered, what is refused, what a crash leaves."""

import datetime as dt
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import update

from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.leases import LeaseLost
from spark_jobs.ledger.schema import Lease, Replay, Run
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.publish import ensure_serving, promote
from spark_jobs.publication.rollback import rollback
from spark_jobs.registry.views import Views
from tests.publishing import NAMES, VIEWS, Server, built, computed, landed, publish

NOW = dt.timedelta(0)


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    computed({})
    opened = ledger.open()
    yield opened
    opened.close()


def test_the_first_publication_creates_views_over_the_speed_layer_alone(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == [f"CREATE VIEW serving.{name}" for name in NAMES]
    current = store.current_publication()
    assert current is not None and (current.id, current.cut) == (0, 0)
    assert all("VERSION AS OF" not in text and "lsn > 0" in text for text in server.texts.values())
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == [], "nothing is said twice"


def test_publishing_alters_and_never_drops(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    server.views_said()
    built(store, "r1", cut=7, version=3)
    assert publish(server, VIEWS, store, "r1") is not None
    assert server.views_said() == [f"ALTER VIEW serving.{name}" for name in NAMES]
    assert all("VERSION AS OF 3" in text and "lsn > 7" in text for text in server.texts.values())
    again = publish(server, VIEWS, store, "r1")
    assert again is not None and again.run_id == "r1"
    assert server.views_said() == [], "one publication per run"


def test_without_a_passed_audit_nothing_is_published(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    before = dict(server.texts)
    built(store, "r1", cut=7, version=3, audited=False)
    with pytest.raises(PublishRefused, match="not audited"):
        publish(server, VIEWS, store, "r1")
    store.record_audit("r1", passed=False, docs_url="the docs")
    with pytest.raises(PublishRefused, match="failed; nothing is published"):
        publish(server, VIEWS, store, "r1")
    store.record_audit("r1", passed=True)
    built(store, "r1", cut=7, version=4, audited=False)
    with pytest.raises(PublishRefused, match="built again after its audit"):
        publish(server, VIEWS, store, "r1")
    assert server.texts == before


def test_a_run_with_a_view_that_was_not_built_is_refused(store: Store) -> None:
    store.begin_run(Run(run_id="r1", cut=7))
    store.record_audit("r1", passed=True)
    with pytest.raises(PublishRefused, match="has not built orders_by_day, word_count"):
        publish(Server(), VIEWS, store, "r1")


def test_publications_go_backwards_only_by_rollback(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    built_at_7 = publish(server, VIEWS, store, "r1")
    built(store, "r0", cut=6, version=4)
    with pytest.raises(PublishRefused, match="has cut 6; publication 1 already has 7"):
        publish(server, VIEWS, store, "r0")
    assert built_at_7 is not None
    back = rollback(server, VIEWS, store)
    assert (back.id, back.kind, back.restores, back.cut) == (2, "rollback", 0, 0)
    assert all("lsn > 0" in text for text in server.texts.values())
    with pytest.raises(PublishRefused, match="a publication before 0"):
        rollback(server, VIEWS, store)
    with pytest.raises(PublishRefused, match=r"batch\.orders_by_day version 3 is gone"):
        rollback(server, VIEWS, store, to=built_at_7.id)


def test_a_crash_between_intent_and_done_is_finished_at_the_next_start(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    server.fatal = "ALTER VIEW serving.word_count"
    with pytest.raises(OSError):
        publish(server, VIEWS, store, "r1")
    assert [("lsn > 7" in server.texts[f"serving.{name}"]) for name in NAMES] == [True, False]
    server.fatal = None
    server.views_said()
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == ["ALTER VIEW serving.word_count"]
    current, run = store.current_publication(), store.run("r1")
    assert current is not None and (current.run_id, current.state) == ("r1", "done")
    assert run is not None and run.state == "finished"


def test_b14_a_view_that_the_server_refuses_takes_no_other_with_it_and_is_named(store: Store) -> None:
    server = Server()
    server.refused = "CREATE VIEW serving.orders_by_day"
    assert [*ensure_serving(server, VIEWS, store).refused] == ["orders_by_day"]
    assert server.views_said() == ["CREATE VIEW serving.word_count"]
    assert store.current_publication() is not None, "the start waits for nothing that cannot come"
    server.refused = None
    assert not ensure_serving(server, VIEWS, store).refused
    assert server.views_said() == ["CREATE VIEW serving.orders_by_day"], "tried again, and only that one"


def test_b14_a_view_whose_new_text_is_refused_keeps_the_old_one_until_it_is_taken(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    server.refused = "ALTER VIEW serving.orders_by_day"
    publish(server, VIEWS, store, "r1")
    run = store.run("r1")
    assert run is not None and [*run.summary["refused"]] == ["orders_by_day"]
    assert [("lsn > 7" in server.texts[f"serving.{name}"]) for name in NAMES] == [False, True]
    server.refused = None
    ensure_serving(server, VIEWS, store)
    assert all("lsn > 7" in text for text in server.texts.values())


def test_a_new_view_is_served_by_the_speed_layer_until_its_first_build(store: Store) -> None:
    server = Server()
    ensure_serving(server, Views(VIEWS.all[:1]), store)
    built(store, "r1", cut=7, version=3)
    publish(server, Views(VIEWS.all[:1]), store, "r1")
    server.views_said()
    ensure_serving(server, VIEWS, store)
    assert server.views_said() == ["CREATE VIEW serving.word_count"]
    current = store.current_publication()
    assert current is not None
    assert {view_id: source.cut for view_id, source in store.sources(current).items()} == {
        "orders_by_day": 7,
        "word_count": 0,
    }


def test_a_view_that_speed_partials_has_no_column_for_is_held_back(store: Store, platform_home: Path) -> None:
    shutil.rmtree(platform_home / "warehouse")
    server = Server()
    built(store, "r1", cut=7, version=3)
    publish(server, VIEWS, store, "r1")
    assert server.views_said() == [], "its serving view could not even be altered"
    run = store.run("r1")
    assert run is not None and run.summary["held_back"] == {"orders_by_day": 8, "word_count": 8}


def test_a4_a_new_view_has_no_name_until_it_has_all_of_its_history(store: Store) -> None:
    server, one = Server(), Views(VIEWS.all[:1])
    lsns = dict.fromkeys(range(1, 6), NOW)
    landed(*lsns)
    computed(lsns, one)
    ensure_serving(server, one, store)
    named = ensure_serving(server, VIEWS, store)
    assert named.waiting == ("word_count",) and "serving.word_count" not in server.texts
    computed({lsn: NOW for lsn in lsns if lsn != 3})
    assert ensure_serving(server, VIEWS, store).waiting == ("word_count",)
    pins.create(server, VIEWS, store, "meanwhile")
    assert "pin_meanwhile.word_count" not in server.texts and "pin_meanwhile.orders_by_day" in server.texts
    computed({3: NOW})
    assert ensure_serving(server, VIEWS, store).waiting == () and "serving.word_count" in server.texts


def test_a_view_that_was_served_once_keeps_its_name_whatever_it_lacks(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    landed(1, 2)
    computed({1: NOW, 2: NOW}, Views(VIEWS.all[:1]))
    del server.texts["serving.word_count"]
    assert ensure_serving(server, VIEWS, store).waiting == () and "serving.word_count" in server.texts


def test_b10_what_another_client_drops_comes_back_and_is_told(store: Store) -> None:
    server = Server()
    assert ensure_serving(server, VIEWS, store).lost == (), "at first nothing was there to lose"
    text = server.texts.pop("serving.word_count")
    assert ensure_serving(server, VIEWS, store).lost == ("serving.word_count",)
    assert server.texts["serving.word_count"] == text
    server.tables.remove("speed.partials")
    assert ensure_serving(server, VIEWS, store).lost == ("speed.partials",)
    assert ensure_serving(server, VIEWS, store).lost == ()


def test_b7_a_rollback_is_not_undone_by_a_run_that_was_built_on_what_it_took_back(store: Store) -> None:
    server, one = Server(), Views(VIEWS.all[:1])
    ensure_serving(server, one, store)
    built(store, "r1", cut=7, version=3)
    publish(server, one, store, "r1")
    built(store, "r2", cut=9, version=4)
    rollback(server, one, store)
    with pytest.raises(PublishRefused, match=r"built upon publication 1, and 2 \(rollback\) is in force now"):
        publish(server, one, store, "r2")
    assert "lsn > 0" in server.texts["serving.orders_by_day"]
    built(store, "r3", cut=9, version=5)
    ensure_serving(server, VIEWS, store)  # a new view undoes nothing
    assert publish(server, VIEWS, store, "r3") is not None


def test_b8_whoever_gives_names_does_not_undo_a_publication_that_completes_meanwhile(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    publishing = threading.Thread(target=lambda: publish(server, VIEWS, ledger.open(), "r1"))
    del server.texts["serving.word_count"]

    def execute(statement: str) -> list[tuple[str, str, bool]]:
        if not publishing.ident:
            publishing.start()
            publishing.join(1)
        return server(statement)

    ensure_serving(execute, VIEWS, store)
    publishing.join(30)
    current = store.current_publication()
    assert current is not None and current.cut == 7
    assert all("lsn > 7" in text for text in server.texts.values())


def test_b8_a_process_that_was_paused_while_it_gave_names_says_nothing_more(store: Store) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)

    def execute(statement: str) -> list[tuple[str, str, bool]]:
        if statement.startswith("ALTER"):
            with store.write() as session:
                session.execute(update(Lease).values(until=dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)))
            with ledger.open().holding("what readers see"):
                server.said.append("another process decides")
        return server(statement)

    with pytest.raises(LeaseLost, match="what readers see: another process has taken over"):
        publish(execute, VIEWS, store, "r1")
    assert server.said[-2:] == ["another process decides", server.said[-1]] and "ALTER" in server.said[-1]
    assert store.unfinished_publication() is not None, "the next one finishes it"


@pytest.fixture
def both() -> Views:
    """orders_by_day in two versions."""
    orders, words = VIEWS
    assert isinstance(orders, AggregateView)
    return Views((orders, replace(orders, version=2), words))


def test_a_name_is_served_from_its_first_version_until_another_is_promoted(store: Store, both: Views) -> None:
    server = Server()
    computed({1: NOW, 2: NOW})
    ensure_serving(server, VIEWS, store)
    server.views_said()
    ensure_serving(server, both, store)  # version 2 has no partials of lsn 1 and 2
    assert server.views_said() == []
    with pytest.raises(PublishRefused, match="version 2 of orders_by_day lacks lsn 1"):
        promote(server, both, store, "orders_by_day", 2)
    computed({1: NOW, 2: NOW}, both)
    ensure_serving(server, both, store)
    assert server.views_said() == [], "that it lacks nothing is not yet a decision"
    pins.create(server, both, store, "before")
    server.views_said()
    promote(server, both, store, "orders_by_day", 2)
    assert server.views_said() == ["ALTER VIEW serving.orders_by_day"]
    assert "orders_by_day_v2" in server.texts["serving.orders_by_day"]
    pins.create(server, both, store, "after")
    assert "orders_by_day_v1" in server.texts["pin_before.orders_by_day"]
    assert "orders_by_day_v2" in server.texts["pin_after.orders_by_day"]


def test_a_version_whose_file_takes_the_place_of_the_one_that_is_served_waits_until_it_lacks_nothing(
    store: Store, both: Views
) -> None:
    server = Server()
    computed({1: NOW, 2: NOW})
    ensure_serving(server, VIEWS, store)
    server.views_said()
    replaced = Views(both.all[1:])
    named = ensure_serving(server, replaced, store)
    assert (named.waiting, named.left) == (("orders_by_day",), ("serving.orders_by_day",))
    assert server.views_said() == [], "a part of its history looks like an answer"
    computed({1: NOW, 2: NOW}, replaced)
    assert ensure_serving(server, replaced, store).left == ()
    assert server.views_said() == ["ALTER VIEW serving.orders_by_day"]
    assert "orders_by_day_v2" in server.texts["serving.orders_by_day"]


def test_a_view_that_comes_back_keeps_its_last_text_until_it_lacks_nothing(store: Store) -> None:
    server, alone = Server(), Views(VIEWS.all[:1])
    landed(*range(1, 13))
    computed(dict.fromkeys(range(1, 10), NOW))
    ensure_serving(server, VIEWS, store)
    built(store, "r1", cut=7, version=3)
    publish(server, VIEWS, store, "r1")
    built(store, "r2", cut=8, version=4)
    publish(server, alone, store, "r2")
    assert ensure_serving(server, alone, store).left == ("serving.word_count",)
    last = server.texts["serving.word_count"]
    assert "VERSION AS OF 3" in last and "lsn > 7" in last
    computed({10: NOW, 11: NOW}, alone)
    computed({12: NOW})
    named = ensure_serving(server, VIEWS, store)
    assert (named.waiting, named.left, server.texts["serving.word_count"]) == (("word_count",), (), last)
    computed({10: NOW, 11: NOW})
    assert ensure_serving(server, VIEWS, store).waiting == ()
    assert "lsn > 0" in server.texts["serving.word_count"], "by the speed layer alone, which has it all"


def test_a3_a_pin_of_a_past_moment_shows_the_version_that_was_served_then(store: Store, both: Views) -> None:
    server = Server()
    computed({1: NOW}, both)
    ensure_serving(server, both, store)
    before = pins.create(server, both, store, "before")
    promote(server, both, store, "orders_by_day", 2)
    pins.create(server, both, store, "then", at=before.now)
    assert "orders_by_day_v1" in server.texts["pin_then.orders_by_day"]


def test_a_promotion_outlives_a_restart_and_can_be_taken_back(store: Store, both: Views) -> None:
    server = Server()
    computed({1: NOW}, both)
    ensure_serving(server, both, store)
    promote(server, both, store, "orders_by_day", 2)
    server.views_said()
    ensure_serving(server, both, store)
    assert server.views_said() == []
    promote(server, both, store, "orders_by_day", 1)
    assert "orders_by_day_v1" in server.texts["serving.orders_by_day"]
    assert store.promotions("orders_by_day") == [2, 1] and store.promoted() == {"orders_by_day": 1}


def test_what_is_no_version_is_not_promoted(store: Store, both: Views) -> None:
    computed({1: NOW}, both)
    ensure_serving(Server(), both, store)
    with pytest.raises(PublishRefused, match="orders_by_day has no version 3 to serve; the speed layer computes 1, 2"):
        promote(Server(), both, store, "orders_by_day", 3)
    with pytest.raises(PublishRefused, match="nothing has no version 1"):
        promote(Server(), both, store, "nothing", 1)
    assert store.promoted() == {}


def test_a_replay_that_is_cancelled_while_it_publishes_is_not_published(store: Store) -> None:
    """Whoever cancels is told that what is published stays."""
    server = Server()
    ensure_serving(server, VIEWS, store)
    store.begin_replay(Replay(run_id="again", wanted={}, reason="a test", asked_by="ada", preview={}))
    built(store, "again", cut=7, version=3)
    store.record_differences("again", [{"view": "orders_by_day"}])
    store.approve_replay("again", "ada")
    server.views_said()

    def cancel(*_: object) -> list[str]:
        store.cancel_replay("again", "bob")
        return []

    with pytest.raises(LedgerError, match="replay again was cancelled by bob"):
        publish(server, VIEWS, store, "again", hold=cancel)
    assert store.publication_of("again") is None and server.views_said() == []
    run = store.run("again")
    assert run is not None and run.state == "superseded"
    store.begin_run(Run(run_id="nightly", cut=9))
