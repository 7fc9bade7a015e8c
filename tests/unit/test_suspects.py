"""Duplicates across tasks and across micro-batches: one record counts, the earliest in the log."""

import datetime as dt
import hashlib

import pyarrow as pa

from spark_jobs.dedupe import Window
from spark_jobs.speed import suspects

TOPICS = ("a", "b")
NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def ids(*rows):
    """(name, lsn, topic, partition, offset) -> a table with the columns of SUSPECT."""
    return pa.Table.from_pylist(
        [
            {"identity": hashlib.md5(name.encode()).digest(), "lsn": lsn, "topic": t, "partition": p, "offset": o}
            for name, lsn, t, p, o in rows
        ],
        schema=suspects.SUSPECT,
    )


def test_ids_and_their_coordinates_come_back_from_the_rows_that_tasks_send():
    sent = ids(("x", 5, "b", 1, 7), ("y", 5, "a", 0, 9), ("z", 6, "a", 2, 1))
    rows = pa.concat_tables(suspects.ids_rows(sent, TOPICS))
    flat = pa.table({"ids": rows["control"].combine_chunks().field("ids"), "positions": rows["positions"]})
    assert rows["lsn"].to_pylist() == [5, 6]
    assert suspects.unpack(flat, TOPICS).to_pylist() == sent.to_pylist()


def test_an_id_that_two_tasks_saw_counts_where_the_log_has_it_first():
    found = suspects.find(ids(("x", 5, "b", 0, 1), ("x", 5, "a", 1, 8), ("y", 5, "a", 0, 2)), Window(60, 100))
    assert found.select(["lsn", "topic", "partition", "offset"]).to_pylist() == [
        {"lsn": 5, "topic": "a", "partition": 1, "offset": 8}
    ]


def test_an_id_that_the_window_knows_counts_nowhere():
    window = Window(60, 100)
    window.add(4, hashlib.md5(b"x").digest(), NOW)
    found = suspects.find(ids(("x", 5, "a", 0, 1), ("y", 5, "a", 0, 2)), window)
    assert found.num_rows == 1
    assert found["lsn"].to_pylist() == [None]
    kept, lost = suspects.split(ids(("x", 5, "a", 0, 1), ("y", 5, "a", 0, 2)), found)
    assert kept["offset"].to_pylist() == [2]
    assert lost["offset"].to_pylist() == [1]


def test_a_task_keeps_a_suspect_only_at_the_winners_coordinates():
    here = ids(("x", 5, "a", 1, 8), ("x", 5, "b", 0, 1), ("y", 5, "a", 0, 2))
    kept, lost = suspects.split(here, suspects.find(here, Window(60, 100)))
    assert kept["topic"].to_pylist() == ["a", "a"]
    assert lost.select(["topic", "offset"]).to_pylist() == [{"topic": "b", "offset": 1}]
