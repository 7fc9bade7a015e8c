"""Pins: which publication, which lsn, which name; and what a half-made one becomes."""

import datetime as dt
from dataclasses import replace

import pytest

from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.publication.pin_names import PinNames
from spark_jobs.publication.publish import Named, ensure_serving
from tests.publishing import NAMES, VIEWS, Server, built, computed, publish

HOUR = dt.timedelta(hours=1)


@pytest.fixture
def server(store: Store) -> Server:
    """Publication 1 at cut 2; lsns 1 to 5 are computed, the last of them an hour from now."""
    made = Server()
    ensure_serving(made, VIEWS, store)
    computed({1: -HOUR, 2: -HOUR, 3: -HOUR, 4: -HOUR, 5: HOUR})
    built(store, "r1", cut=2, version=3)
    publish(made, VIEWS, store, "r1")
    return made


def test_a_pin_holds_the_publication_the_last_committed_lsn_and_the_time(store: Store, server: Server) -> None:
    pin = pins.create(server, VIEWS, store, "march")
    assert (pin.publication_id, pin.head) == (1, 4), "lsn 5 is committed later"
    text = server.texts["pin_march.orders_by_day"]
    assert "VERSION AS OF 3" in text and "lsn > 2 AND lsn <= 4" in text
    assert pins.create(server, VIEWS, store, "pin_march").now == pin.now, "the same name is the same pin"


def test_a_time_before_a_publication_pins_the_one_before(store: Store, server: Server) -> None:
    second, first = store.publications(newest=2)
    assert first.done_at is not None and second.done_at is not None
    between = first.done_at + (second.done_at - first.done_at) / 2
    assert pins.create(server, VIEWS, store, "early", at=between).publication_id == 0
    with pytest.raises(LedgerError, match="nothing was published by"):
        pins.create(server, VIEWS, store, "never", at=first.done_at - HOUR)
    with pytest.raises(LedgerError, match="early exists already"):
        pins.create(server, VIEWS, store, "early", at=first.done_at)


def test_a_pin_of_what_is_published_shows_nothing_past_the_cut(store: Store, server: Server) -> None:
    pin = pins.create(server, VIEWS, store, "marts", is_published=True)
    assert (pin.publication_id, pin.head) == (1, 2)
    text = server.texts["pin_marts.orders_by_day"]
    assert "VERSION AS OF 3" in text and "WHERE false" in text and "lsn >" not in text
    sources = {**store.sources(1), "word_count": replace(store.sources(1)["word_count"], cut=1)}
    store.finish_publication(store.begin_publication("batch", sources, cut=2).id)
    assert pins.create(server, VIEWS, store, "held", is_published=True).head == 2
    assert "lsn > 1 AND lsn <= 2" in server.texts["pin_held.word_count"], "a view that was held back"


def test_a_half_made_pin_is_finished_with_its_first_literals(store: Store, server: Server) -> None:
    server.fatal = "CREATE VIEW pin_p.`word_count`"
    with pytest.raises(OSError):
        pins.create(server, VIEWS, store, "p")
    half = store.pin("p")
    assert half is not None and half.state == "intent"
    server.fatal = None
    server.views_said()
    assert pins.create(server, VIEWS, store, "p").now == half.now
    assert server.views_said() == ["CREATE VIEW pin_p.`word_count`"]
    finished = store.pin("p")
    assert finished is not None and finished.state == "done"
    assert {name.split(".")[1] for name in server.texts if name.startswith("pin_p.")} == set(NAMES)


@pytest.mark.parametrize("name", ["", "1st", "a-b", "Upper", "x; DROP SCHEMA serving", "a" * 49, "a\n", "café"])
def test_a_name_that_is_no_identifier_is_refused(store: Store, server: Server, name: str) -> None:
    server.said.clear()
    with pytest.raises(LedgerError, match="cannot name a pin"):
        pins.checked(name)
    assert server.said == []


def test_pins_past_their_time_are_due(store: Store, server: Server) -> None:
    pins.create(server, VIEWS, store, "short", keep=-HOUR)
    pins.create(server, VIEWS, store, "long", keep=HOUR)
    pins.create(server, VIEWS, store, "ever")
    assert [pin.name for pin in pins.due(store)] == ["short"]
    pins.drop(server, store, "short")
    assert server.said[-1] == "DROP SCHEMA IF EXISTS pin_short CASCADE"
    assert [pin.name for pin in store.pins()] == ["long", "ever"]


def pinned(server: Server, name: str) -> dict[str, str]:
    return {view: text for view, text in server.texts.items() if view.startswith(f"pin_{name}.")}


def test_b10_what_another_client_drops_of_a_pin_comes_back_and_is_told(store: Store, server: Server) -> None:
    names = PinNames(VIEWS, store)
    assert names.mend(server) == Named()
    for name in ("march", "april"):
        pins.create(server, VIEWS, store, name)
    computed({6: -HOUR})  # what the pins do not show
    before = dict(server.texts)
    assert names.mend(server) == Named(), "nothing is lost"
    del server.texts["pin_march.word_count"]
    assert names.mend(server) == Named(lost=("pin_march.word_count",))
    assert server.texts == before, "with the literals that it had"
    server("DROP SCHEMA IF EXISTS pin_april CASCADE")
    assert names.mend(server) == Named(lost=("pin_april",))
    assert server.texts == before
    assert names.mend(server) == Named()


def test_a_name_of_a_pin_that_the_server_refuses_takes_no_other_with_it(store: Store, server: Server) -> None:
    names = PinNames(VIEWS, store)
    for name in ("april", "march"):
        pins.create(server, VIEWS, store, name)
        del server.texts[f"pin_{name}.word_count"]
    server.refused = "CREATE VIEW pin_april."
    mended = names.mend(server)
    assert [*mended.refused] == ["pin_april"] and mended.lost == ("pin_march.word_count",)


def test_a_pin_that_is_dropped_meanwhile_is_neither_lost_nor_left_behind(store: Store, server: Server) -> None:
    names = PinNames(VIEWS, store)
    pins.create(server, VIEWS, store, "march")
    del server.texts["pin_march.word_count"]

    def execute(statement: str) -> list[tuple[str, str, bool]]:
        if statement.startswith("CREATE VIEW pin_march"):
            pins.drop(server, store, "march")
        return server(statement)

    assert names.mend(execute) == Named()
    assert pinned(server, "march") == {}
    half = pins.create(server, VIEWS, store, "half")
    store.set_pin(half.name, "dropping")
    del server.texts["pin_half.word_count"]
    assert names.mend(server) == Named(), "of one that is being dropped nothing is given back"
    assert pins.create(server, VIEWS, store, "half").state == pins.DONE, "unless somebody asks for it again"
    assert len(pinned(server, "half")) == len(NAMES)
