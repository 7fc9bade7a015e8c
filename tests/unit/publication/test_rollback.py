"""Which publication a rollback goes back to, and the versions of views that it brings back."""

import datetime as dt
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Build
from spark_jobs.ledger.store import Store
from spark_jobs.ledger.view_versions import PROMOTES
from spark_jobs.publication.fitness import PublishRefused
from spark_jobs.publication.publish import ensure_serving, promote
from spark_jobs.publication.rollback import rollback
from spark_jobs.registry.views import Views
from spark_jobs.storage import tables
from tests.publishing import VIEWS, Server, built, computed, landed, publish

ONE = Views(VIEWS.all[:1])
GOOD, BAD = 3, 4
"""Versions of the batch tables."""


def write_versions(views: Views) -> None:
    """The batch tables, with all versions up to BAD."""
    for view in views:
        for version in range(BAD + 1):
            write_deltalake(tables.path(view.tables[0]), pa.table({"n": [version]}), mode="overwrite")


@pytest.fixture
def store(platform_home: Path, both: Views) -> Iterator[Store]:
    computed(dict.fromkeys(range(1, 10), dt.timedelta(0)), both)
    write_versions(both)
    with closing(ledger.open()) as opened:
        yield opened


@pytest.fixture
def server(store: Store) -> Server:
    """Publication 0 of one view without a build, 1, which is good, and 2, which is bad."""
    made = Server()
    ensure_serving(made, ONE, store)
    built(store, "good", cut=7, version=GOOD)
    publish(made, ONE, store, "good")
    built(store, "bad", cut=8, version=BAD)
    publish(made, ONE, store, "bad")
    return made


def shows(server: Server, version: int) -> bool:
    return f"VERSION AS OF {version} " in server.texts["serving.orders_by_day"].replace("\n", " ") + " "


def test_it_takes_back_a_publication_though_a_new_view_has_appeared_since(server: Server, store: Store) -> None:
    ensure_serving(server, VIEWS, store)
    assert shows(server, BAD)
    assert rollback(server, VIEWS, store).restores == 1
    assert shows(server, GOOD)


def test_a_second_one_goes_further_back_and_never_to_what_the_first_took_back(server: Server, store: Store) -> None:
    assert rollback(server, ONE, store).restores == 1
    ensure_serving(server, VIEWS, store)
    assert rollback(server, VIEWS, store).restores == 0
    assert not shows(server, BAD)


def test_it_never_goes_to_a_publication_that_was_taken_back_before_a_newer_one(server: Server, store: Store) -> None:
    rollback(server, ONE, store)
    built(store, "next", cut=9, version=2)
    publish(server, ONE, store, "next")
    assert rollback(server, ONE, store).restores == 1
    assert shows(server, GOOD)


def test_one_that_shows_the_same_is_passed_over_and_refused(server: Server, store: Store) -> None:
    built(store, "same", cut=8, version=BAD)
    same = publish(server, ONE, store, "same")
    assert same is not None
    with pytest.raises(PublishRefused, match="publication 2 shows what readers see already"):
        rollback(server, ONE, store, to=2)
    assert rollback(server, ONE, store).restores == 1


def test_one_that_is_not_there_is_refused(server: Server, store: Store) -> None:
    with pytest.raises(PublishRefused, match="publication 9 is not there to roll back to"):
        rollback(server, ONE, store, to=9)


@pytest.fixture
def late(platform_home: Path) -> Iterator[tuple[Server, Store]]:
    """Publication 1 of one view; 2 brings another, which lacks partials of the first lsns; 3 has builds of both."""
    write_versions(VIEWS)
    landed(*range(1, 10))
    computed(dict.fromkeys(range(1, 9), dt.timedelta(0)), ONE)
    made = Server()
    with closing(ledger.open()) as store:
        ensure_serving(made, ONE, store)
        built(store, "good", cut=7, version=GOOD)
        publish(made, ONE, store, "good")
        computed({9: dt.timedelta(0)})
        assert ensure_serving(made, VIEWS, store).waiting == ("word_count",)
        built(store, "both", cut=8, version=BAD)
        publish(made, VIEWS, store, "both")
        yield made, store


@pytest.mark.parametrize("to", [None, 1, 2])
def test_a_view_that_had_no_answer_then_keeps_the_one_that_it_has(late: tuple[Server, Store], to: int | None) -> None:
    server, store = late
    assert rollback(server, VIEWS, store, to).restores == (to or 2)
    assert shows(server, GOOD)
    words = store.current_sources()["word_count"]
    assert (words.batch_version, words.cut) == (BAD, 8)
    named = ensure_serving(server, VIEWS, store)
    assert not named.waiting and not named.left, "nothing is lost, and nothing left to fill"
    current = store.current_publication()
    assert current is not None and current.kind == "rollback"
    assert f"VERSION AS OF {BAD}" in server.texts["serving.word_count"]


def test_a_view_that_waits_for_its_history_stands_in_no_ones_way(late: tuple[Server, Store]) -> None:
    server, store = late
    ensure_serving(server, Views((*VIEWS, replace(VIEWS.all[1], name="words_again"))), store)
    assert rollback(server, VIEWS, store).restores == 2
    assert shows(server, GOOD)


def publish_both(
    server: Server, store: Store, both: Views, run: str, cut: int, version: int, **summary: object
) -> None:
    """A publication of both versions."""
    built(store, run, cut=cut, version=version, audited=False)
    first = store.builds(run)["orders_by_day"]
    copied = {column.key: getattr(first, column.key) for column in Build.__table__.columns}
    store.record_build(Build(**copied | {"view_id": "orders_by_day_v2"}))
    store.progress(run, **summary)
    store.record_audit(run, passed=True)
    publish(server, both, store, run)


@pytest.fixture
def promoting(store: Store, both: Views) -> Server:
    """Publication 1 of both versions, served from the first; 2 promotes the second one."""
    made = Server()
    ensure_serving(made, both, store)
    publish_both(made, store, both, "before", 7, GOOD)
    publish_both(made, store, both, "replay", 8, BAD, **{PROMOTES: {"orders_by_day": 2}})
    return made


def version_of(server: Server) -> str:
    """The version that readers see, by the column of its partials."""
    return "v2" if "orders_by_day_v2" in server.texts["serving.orders_by_day"] else "v1"


def test_a_promotion_of_the_publication_is_taken_back_with_it(promoting: Server, store: Store, both: Views) -> None:
    assert version_of(promoting) == "v2"
    rollback(promoting, both, store)
    assert version_of(promoting) == "v1" and store.promoted() == {"orders_by_day": 1}
    ensure_serving(promoting, both, store)
    assert version_of(promoting) == "v1"
    rollback(promoting, both, store, to=2)
    assert version_of(promoting) == "v2", "forwards again, with what it promoted"


def test_a_promotion_that_readers_saw_before_the_publication_stays(store: Store, both: Views) -> None:
    server = Server()
    ensure_serving(server, both, store)
    publish_both(server, store, both, "good", 7, GOOD)
    promote(server, both, store, "orders_by_day", 2)
    publish_both(server, store, both, "bad", 8, BAD)
    rollback(server, both, store)
    assert version_of(server) == "v2" and shows(server, GOOD)
    assert store.promotions("orders_by_day") == [2], "nothing was decided anew"


def test_what_was_promoted_since_is_not_served_from_partials_alone(store: Store, both: Views) -> None:
    server = Server()
    ensure_serving(server, VIEWS, store)
    built(store, "before", cut=7, version=GOOD)
    publish(server, VIEWS, store, "before")
    ensure_serving(server, both, store)
    publish_both(server, store, both, "replay", 8, BAD, **{PROMOTES: {"orders_by_day": 2}})
    rollback(server, both, store, to=1)
    ensure_serving(server, both, store)
    assert version_of(server) == "v1" and shows(server, GOOD)


def test_a_crash_in_a_rollback_leaves_no_version_half_taken_back(promoting: Server, store: Store, both: Views) -> None:
    promoting.fatal = "ALTER VIEW serving.orders_by_day"
    with pytest.raises(OSError):
        rollback(promoting, both, store)
    promoting.fatal = None
    ensure_serving(promoting, both, store)
    assert version_of(promoting) == "v1" and shows(promoting, GOOD)
