"""The ledger keeps its promises without Spark, Kafka or files other than its own."""

import stat
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import URL, select, update

from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Epoch, Meta, Request, now
from spark_jobs.ledger.store import LedgerError, Store


def test_the_file_is_private_and_in_wal_mode(tmp_path: Path) -> None:
    store = ledger.open(URL.create("sqlite+pysqlite", database=str(tmp_path / "ledger.db")))
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    store.close()


def test_another_schema_version_is_refused(store: Store, at: URL) -> None:
    with store.write() as session:
        session.execute(update(Meta).values(value="99"))
    with pytest.raises(LedgerError, match="schema version 99"):
        ledger.open(at)


def test_instants_keep_their_time_zone(store: Store) -> None:
    store.beat("speed", {"lsn": 3})
    beat = store.heartbeat("speed")
    assert beat is not None
    assert beat.payload == {"lsn": 3}
    assert datetime.now(UTC) - beat.at < timedelta(seconds=10)


def test_many_writers_lose_nothing(at: URL) -> None:
    def work(name: int) -> None:
        mine = ledger.open(at)
        for turn in range(20):
            mine.request("trim", span=f"{name}-{turn}")
        mine.close()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store, taken = ledger.open(at), 0
    while store.next_request("trim") is not None:
        taken += 1
    store.close()
    assert taken == 80


def test_a_request_is_taken_once_answered_and_reopened_after_a_crash(store: Store) -> None:
    first = store.request("trim", below=4)
    assert store.request("trim", below=4) == first, "the same waiting request is one request"
    assert store.next_request("recover") is None
    taken = store.next_request("trim")
    assert taken is not None and (taken.id, taken.kind, taken.arguments) == (first, "trim", {"below": 4})
    assert store.next_request("trim") is None
    store.reopen_requests()
    assert store.next_request("trim") is not None
    store.answer_request(first, {"files": 2})
    with store.read() as session:
        answered = session.get_one(Request, first)
    assert (answered.state, answered.answer) == ("done", {"files": 2})


def test_the_last_epoch_is_the_greatest(store: Store) -> None:
    assert store.last_epoch() == 0
    for epoch, after_lsn in ((4, 7), (1, 0)):
        store.record_epoch(epoch, after_lsn)
    assert store.last_epoch() == 4


def test_a_publication_is_in_force_from_done_until_the_next_is_done(store: Store) -> None:
    first = store.begin_publication("initial", {}, cut=0)
    assert store.current_publication() is None
    store.finish_publication(first.id)
    between = datetime.now(UTC)
    second = store.begin_publication("batch", {}, cut=4)
    current = store.current_publication()
    assert current is not None and current.id == 0
    with pytest.raises(LedgerError, match="publication 1 is unfinished"):
        store.begin_publication("batch", {}, cut=5)
    store.finish_publication(second.id)
    current, earlier = store.current_publication(), store.publication_at(between)
    assert current is not None and current.id == 1
    assert earlier is not None and earlier.id == 0


def test_a_pin_needs_a_new_name_and_a_live_publication(store: Store) -> None:
    publication = store.begin_publication("initial", {}, cut=0)
    store.finish_publication(publication.id)
    store.begin_pin("p", publication.id, 3, datetime.now(UTC))
    with pytest.raises(LedgerError, match="exists already"):
        store.begin_pin("p", publication.id, 3, datetime.now(UTC))
    later = store.begin_publication("batch", {}, cut=4)
    store.finish_publication(later.id)
    soon = datetime.now(UTC) + timedelta(hours=1)
    assert store.expire_publications(soon) == [], "one is pinned, the other in force"
    store.drop_pin("p")
    assert store.expire_publications(soon) == [publication.id]
    with pytest.raises(LedgerError, match="expired"):
        store.begin_pin("q", publication.id, 3, datetime.now(UTC))
    with pytest.raises(LedgerError, match="no pin is called p"):
        store.drop_pin("p")


def test_d1_what_is_long_over_is_forgotten(store: Store) -> None:
    answered, waiting = store.request("trim", up_to_lsn=1), store.request("trim", up_to_lsn=2)
    store.answer_request(answered)
    for epoch in (1, 2):
        store.record_epoch(epoch, 0)
    store.forget_messages(now() - timedelta(days=1))
    assert len(store.all(select(Request))) == len(store.all(select(Epoch))) == 2
    store.forget_messages(now())
    assert [request.id for request in store.all(select(Request))] == [waiting]
    assert store.last_epoch() == 2, "the last one counts, however old"
    assert len(store.all(select(Epoch))) == 1
