"""Publishing as statements: what is created, what is altered, what is refused, what a crash leaves."""

import datetime as dt
import shutil
import threading
from pathlib import Path

import pytest
from sqlalchemy import update

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.leases import LeaseLost
from spark_jobs.ledger.schema import Lease, Replay, Run
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.publication.rollback import rollback
from spark_jobs.registry.views import Views
from tests.publishing import NAMES, VIEWS, Server, built, publish


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
