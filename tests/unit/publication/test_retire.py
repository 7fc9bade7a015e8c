"""What is left of a view whose file is gone is removed, and nothing that somebody needs."""

import datetime as dt
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger import view_lock
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import UNBUILT
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.ledger.turns import RunActive
from spark_jobs.publication import pins
from spark_jobs.publication.publish import ensure_serving
from spark_jobs.publication.retire import StillNeeded, retire
from spark_jobs.publication.rollback import rollback
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


def test_a_view_that_comes_back_begins_without_a_build(server: Server, store: Store) -> None:
    retire(server, WITHOUT, store, "word_count")
    assert "word_count" not in store.current_sources()
    ensure_serving(server, VIEWS, store)
    assert store.current_sources()["word_count"] == UNBUILT, "a build goes on from nothing, as for a new view"
    assert "lsn > 0" in server.texts["serving.word_count"]


def test_a_rollback_shows_no_version_of_a_table_that_was_removed_and_made_anew(server: Server, store: Store) -> None:
    cut_of_the_removed = 1
    retire(server, WITHOUT, store, "word_count")
    ensure_serving(server, VIEWS, store)
    built(store, "r2", cut=9, version=0)  # the new table's versions begin at 0 again
    computed(dict.fromkeys(range(2, 10), -SECOND))
    for view in VIEWS:
        write_deltalake(tables.path(view.tables[0]), pa.table({"n": [1]}), mode="overwrite")
    publish(server, VIEWS, store, "r2")
    rollback(server, VIEWS, store, to=0)
    text = server.texts["serving.word_count"]
    assert "VERSION AS OF 0" not in text or f"lsn > {cut_of_the_removed}" not in text
    assert "lsn > 1" in server.texts["serving.orders_by_day"]


def test_a_past_moment_does_not_show_it_any_more(server: Server, store: Store) -> None:
    retire(server, WITHOUT, store, "word_count")
    ensure_serving(server, VIEWS, store)
    past = store.publications()[-1].done_at
    pins.create(server, VIEWS, store, "past", at=past)
    assert "pin_past.orders_by_day" in server.texts and "pin_past.word_count" not in server.texts


def test_a_run_that_failed_cannot_publish_what_it_had_built_of_it(server: Server, store: Store) -> None:
    built(store, "r2", cut=9, version=1)
    store.record_audit("r2", passed=False)
    retire(server, WITHOUT, store, "word_count")
    assert store.builds("r2").keys() == {"orders_by_day"} and store.builds("r1").keys() == {v.id for v in VIEWS}


def test_it_waits_until_no_run_is_at_work(server: Server, store: Store) -> None:
    store.begin_run(Run(run_id="r2", cut=9))
    with pytest.raises(RunActive, match="run r2 is active"):
        retire(server, WITHOUT, store, "word_count")
    assert "serving.word_count" in server.texts and Path(tables.path("batch.word_count")).exists()


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
