"""Which view has a name for readers, and when it gets one."""

from spark_jobs.ledger.store import Store
from spark_jobs.publication import pins
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.registry.views import Views
from tests.publishing import NAMES, NOW, VIEWS, Server, built, computed, landed, publish


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
