"""What is left of a view whose file is gone is removed, and nothing that somebody needs."""

import datetime as dt
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger import view_lock
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.publication.retire import StillNeeded, retire
from spark_jobs.registry.views import Views, project_views
from spark_jobs.storage import tables
from tests.publishing import VIEWS, Server, built, computed, publish

WITHOUT = Views(tuple(view for view in VIEWS if view.name != "word_count"))
SECOND = dt.timedelta(seconds=1)


@pytest.fixture
def store(platform_home: Path) -> Iterator[Store]:
    with closing(ledger.open()) as opened:
        view_lock.check(opened, VIEWS)
        yield opened


@pytest.fixture
def server(store: Store) -> Server:
    """Publication 1 of both views."""
    made = Server()
    computed({1: -SECOND})
    built(store, "r1", cut=1, version=0)
    publish(made, VIEWS, store, "r1")
    for view in VIEWS:
        (Path(tables.path(batch_tables(view.id)[0])) / "_delta_log").mkdir(parents=True)
    return made


def test_the_last_version_goes_with_its_name_and_tables(server: Server, store: Store) -> None:
    assert retire(server, WITHOUT, store, "word_count") == ["serving.word_count", "batch.word_count"]
    assert not Path(tables.path("batch.word_count")).exists() and Path(tables.path("batch.orders_by_day")).exists()
    assert "DROP VIEW serving.word_count" in server.said and "word_count" in store.view_texts()


def test_a_second_time_finds_nothing_left(server: Server, store: Store) -> None:
    retire(server, WITHOUT, store, "word_count")
    assert retire(server, WITHOUT, store, "word_count") == []


def test_a_view_whose_file_is_there_is_needed(server: Server, store: Store) -> None:
    with pytest.raises(StillNeeded, match=r"its file is there: remove word_count\.py"):
        retire(server, VIEWS, store, "word_count")


def test_a_view_that_a_pin_shows_is_needed(server: Server, store: Store) -> None:
    pins.create(server, VIEWS, store, "p")
    with pytest.raises(StillNeeded, match="pin p shows it"):
        retire(server, WITHOUT, store, "word_count")
    assert Path(tables.path("batch.word_count")).exists()


def test_who_reads_a_view_is_named(store: Store) -> None:
    every = project_views()
    view_lock.check(store, every)
    with pytest.raises(StillNeeded, match="user_card reads it"):
        retire(Server(), every, store, "user_settings")
    with pytest.raises(StillNeeded, match="trades_by_colour reads it"):
        retire(Server(), every, store, "trades")


def test_a_view_that_never_was_is_refused(store: Store) -> None:
    with pytest.raises(LedgerError, match="no layer ever computed a view nothing"):
        retire(Server(), VIEWS, store, "nothing")
