"""B11: of two processes that write for one run, or for two, only the one that holds the tables commits to them."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable
from sqlalchemy import update

from spark_jobs.batch.progress import fenced
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.leases import LeaseLost
from spark_jobs.ledger.schema import Lease, Run
from spark_jobs.ledger.store import Store
from spark_jobs.storage import data_files
from spark_jobs.storage.data_files import FileWriter, Written
from spark_jobs.storage.fencing import Fenced

ROWS = pa.schema([("lsn", pa.int64())])


@pytest.fixture
def store(platform_home: Path) -> Store:
    store = ledger.open()
    store.begin_run(Run(run_id="r1"))
    return store


@pytest.fixture
def table(tmp_path: Path) -> str:
    DeltaTable.create(root := str(tmp_path / "facts"), ROWS)
    return root


def written(root: str, lsn: int) -> list[Written]:
    with FileWriter(root) as writer:
        writer.add(pa.table({"lsn": [lsn]}, schema=ROWS))
        return writer.written()


def pause_ends_its_lease(store: Store) -> None:
    with store.write() as session:
        session.execute(update(Lease).values(until=dt.datetime.now(dt.UTC) - dt.timedelta(seconds=1)))


def another_takes_over_and_commits(store: Store, table: str, lsn: int) -> None:
    pause_ends_its_lease(store)
    with store.writing("r1") as other:
        data_files.swap(DeltaTable(table), (), written(table, lsn), fenced(other))


def lsns(root: str) -> list[int]:
    return sorted(DeltaTable(root).to_pyarrow_table()["lsn"].to_pylist())


def test_b11_a_process_that_was_paused_commits_nothing_more(store: Store, table: str) -> None:
    with store.writing("r1") as paused:
        another_takes_over_and_commits(store, table, 1)
        with pytest.raises(LeaseLost, match="another process has taken over"):
            data_files.swap(DeltaTable(table), (), written(table, 2), fenced(paused))
    assert lsns(table) == [1]


def test_b11_nor_does_one_that_was_paused_after_it_had_asked(store: Store, table: str) -> None:
    with store.writing("r1") as paused:

        @contextmanager
        def asked_then_paused(read: DeltaTable) -> Iterator[CommitProperties]:
            with fenced(paused)(read) as properties:
                another_takes_over_and_commits(store, table, 1)
                yield properties

        with pytest.raises(Fenced, match="epoch 2 writes it now"):
            data_files.swap(DeltaTable(table), (), written(table, 2), asked_then_paused)
    assert lsns(table) == [1]


def test_b11_a_run_goes_on_from_a_commit_of_the_process_that_it_took_over_from(store: Store, table: str) -> None:
    with store.writing("r1") as paused:
        data_files.swap(DeltaTable(table), (), written(table, 1), fenced(paused))
        another_takes_over_and_commits(store, table, 2)
    assert lsns(table) == [1, 2]
