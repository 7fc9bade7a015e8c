"""What no publication reads any more is trimmed, without anybody asking."""

import datetime as dt
import threading
from pathlib import Path

import pytest

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Publication
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.speed import partials_table, trimming
from spark_jobs.storage import coverage
from spark_jobs.storage.fencing import Fence
from tests.hot_tables import T0, Speed, compact

LONG_AGO = dt.datetime.now(dt.UTC) - dt.timedelta(days=100)


@pytest.fixture
def speed(platform_home: Path, monkeypatch: pytest.MonkeyPatch, eager: None) -> Speed:
    """Six lsns, two in each span; the newest id alone must stay known."""
    made, small = Speed(), settings().model_copy(update={"id_window_max_ids": 1})
    for span in range(3):
        made.micro_batches(2)
        compact(T0 + span * 120)
    monkeypatch.setattr(partials_table, "settings", lambda: small)
    return made


def publish(store: Store, cut: int, days_ago: int) -> int:
    publication = store.begin_publication("batch", {"orders_by_day": Source(1, None, cut, None)}, cut=cut)
    store.finish_publication(publication.id)
    with store.write() as session:
        at = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
        session.get_one(Publication, publication.id).done_at = at
    return publication.id


def left(store: Store) -> list[int]:
    trimming.trim_unread(store, [], threading.Lock(), Fence(1))
    return sorted(coverage.covered(0))


def test_d1_partials_are_trimmed_when_the_readers_of_a_publication_are_gone(speed: Speed) -> None:
    store, kept = ledger.open(), settings().publications_kept_days
    assert left(store) == [1, 2, 3, 4, 5, 6], "nothing is published"
    oldest, older = publish(store, 0, 2 * kept), publish(store, 2, kept + 1)
    assert left(store) == [3, 4, 5, 6], "the first is too old to go back to; the second is in force"
    store.begin_pin("p", older, 3, dt.datetime.now(dt.UTC))
    publish(store, 4, 1)
    assert left(store) == [3, 4, 5, 6], "a pin reads it still"
    store.drop_pin("p")
    assert left(store) == [5, 6]
    states = {publication.id: publication.state for publication in store.publications()}
    assert states[oldest] == states[older] == "expired", "nobody goes back to what is trimmed"
    store.close()


def test_d1_a_publication_that_one_may_go_back_to_keeps_its_partials(speed: Speed) -> None:
    store = ledger.open()
    publish(store, 2, 1)
    publish(store, 4, 0)
    assert left(store) == [3, 4, 5, 6]
    store.close()


def test_nothing_is_trimmed_while_a_view_is_in_no_publication(speed: Speed) -> None:
    """It was caught up from the first lsn on: its rows lie in files below the other views' cut."""
    store = ledger.open()
    publish(store, 4, 1)
    known, new = project_views()["orders_by_day"], project_views()["sessions"]
    shown = store.begin_publication("initial", {known.id: Source(1, None, 4, None)}, cut=4)
    store.finish_publication(shown.id)
    assert trimming.unread(store, [known], 6) == store.lowest_live_cut() == 4
    assert trimming.unread(store, [known], 2) == 2, "somebody asked for less"
    assert trimming.unread(store, [known, new], 6) == 0, "somebody asked before it came"
    trimming.trim_unread(store, [known, new], threading.Lock(), Fence(1))
    assert sorted(coverage.covered(0)) == [1, 2, 3, 4, 5, 6]
    store.close()
