"""Duplicates across tasks and across micro-batches: one record counts, the earliest in the log."""

import datetime as dt
import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.speed import staged_facts
from spark_jobs.speed.pass_rows import IDS, duplicates_verdict, ids_of, verdict_rows
from spark_jobs.speed.staged_facts import StagedFactsWriter

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def identity(name):
    return hashlib.md5(name.encode()).digest()


def ids(*rows):
    """(name, lsn, topic, partition, offset) -> a table with the columns of IDS."""
    return pa.Table.from_pylist(
        [
            {"identity": identity(name), "event_type": t, "lsn": lsn, "topic": t, "partition": p, "offset": o}
            for name, lsn, t, p, o in rows
        ],
        schema=IDS,
    )


def test_an_id_that_two_tasks_saw_counts_where_the_log_has_it_first():
    verdict = duplicates_verdict(ids(("x", 5, "b", 0, 1), ("x", 5, "a", 1, 8), ("y", 5, "a", 0, 2)), IdWindow(60, 100))
    assert verdict.kept.select(["topic", "offset"]).to_pylist() == [
        {"topic": "a", "offset": 8},
        {"topic": "a", "offset": 2},
    ]
    assert verdict.duplicates["topic"].to_pylist() == ["b"]


def test_an_id_that_the_window_knows_counts_nowhere():
    window = IdWindow(60, 100)
    window.add(4, identity("x"), NOW)
    verdict = duplicates_verdict(ids(("x", 5, "a", 0, 1), ("x", 5, "a", 0, 3), ("y", 5, "a", 0, 2)), window)
    assert verdict.kept["offset"].to_pylist() == [2]
    assert sorted(verdict.duplicates["offset"].to_pylist()) == [1, 3]


def test_the_ids_that_count_are_stored_per_lsn_and_the_others_by_their_coordinates():
    verdict = duplicates_verdict(
        ids(("y", 6, "a", 0, 2), ("x", 5, "b", 1, 7), ("z", 6, "a", 2, 1), ("x", 6, "a", 0, 9)), IdWindow(60, 9)
    )
    assert verdict.ids == {5: identity("x"), 6: identity("y") + identity("z")}
    rows = pa.concat_tables(verdict_rows(verdict)).to_pylist()
    assert [(row["view"], row["lsn"]) for row in rows] == [
        (row_types.DUPLICATE_ROW, 6),
        (row_types.IDS_ROW, 5),
        (row_types.IDS_ROW, 6),
    ]
    assert (rows[0]["control"]["topic"], rows[0]["control"]["offset"]) == ("a", 9)
    assert rows[2]["control"]["ids"] == identity("y") + identity("z")


@pytest.mark.parametrize("portion", [staged_facts.PORTION, 0])
def test_facts_and_their_ids_come_back_from_the_files_of_a_pass(tmp_path, monkeypatch, portion):
    monkeypatch.setattr(staged_facts, "PORTION", portion)
    decoded = [decode(records(lsn), project_contracts()).facts for lsn in (1, 2)]
    with StagedFactsWriter(tmp_path.as_uri()) as writer:
        for facts in decoded:
            writer.add(facts)
        [file], files_of_ids = writer.written()
    portions = list(staged_facts.portions(file.address))
    assert len(portions) == (1 if portion else 6), "one at a time where each is too large to be joined"
    for event_type in decoded[0]:
        written = pa.concat_tables(facts[event_type] for facts in decoded)
        read = pa.concat_tables(found[event_type] for found in portions if event_type in found)
        assert read.equals(written)
    ids = staged_facts.ids(files_of_ids)
    assert ids.equals(pa.concat_tables(ids_of(facts) for facts in decoded))
    assert set(ids["event_type"].to_pylist()) == {"order_placed", "page_viewed"}, "notes have no identity"


def test_what_a_crash_left_between_the_halves_goes_at_the_next_start(platform_home):
    staged_facts.clear()  # nothing is there yet
    with StagedFactsWriter(staged_facts.root()) as writer:
        writer.add(decode(records(1), project_contracts()).facts)
        files = [file for of_kind in writer.written() for file in of_kind]
    staged_facts.clear()
    assert len(files) == 2 and not any(Path(file.address.removeprefix("file://")).exists() for file in files)


def records(lsn):
    """One record each of two event types, late, so that there are notes."""
    values = {name: project_contracts().of(name).examples[0] for name in ("order_placed", "page_viewed")}
    rows = [
        {
            "topic": name,
            "lsn": lsn,
            "partition": 0,
            "offset": lsn,
            "timestamp": NOW,
            "value": json.dumps(value).encode(),
        }
        for name, value in values.items()
    ]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)
