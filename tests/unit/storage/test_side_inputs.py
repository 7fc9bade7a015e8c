"""What rows are given is every fact of a lower lsn, wherever it comes from: memory, the log, or the stored facts."""

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.engine.decode.assemble import decode
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.registry.views import project_views
from spark_jobs.speed import land
from spark_jobs.speed.in_process import InProcessWriter
from spark_jobs.storage import tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs

MODEL = project_contracts().of("payments_model_promoted")
KEY = side_input_key(MODEL.event_type)
NOW = dt.datetime(2026, 1, 5, 12, tzinfo=dt.UTC)
VIEWS = [project_views()["payments_scored"]]


def records(lsn: int, *versions: int, topic: str = MODEL.topic) -> pa.Table:
    """Models, each by an id of its own version; of another topic the same bytes."""
    rows: list[dict[str, Any]] = []
    for number, version in enumerate(versions):
        event = {**MODEL.examples[0], "event_id": f"00000000-0000-4000-8000-{version:012d}", "model_version": version}
        place = {"lsn": lsn, "topic": topic, "partition": 0, "offset": 10 * lsn + number, "timestamp": NOW}
        rows.append({**place, "key": b"m", "value": json.dumps(event).encode(), "headers": []})
    return pa.Table.from_pylist(rows, row_types.RECORD)


def landed(given: SideInputs, lsn: int, *versions: int, topic: str = MODEL.topic) -> pa.Table:
    found = records(lsn, *versions, topic=topic)
    InProcessWriter(given.history, Fence(1)).land(found, lsn, land.control(1, [], {}, NOW))
    return found


def known(given: SideInputs, lsn: int) -> list[int]:
    return sorted(given.before(lsn)[KEY]["model_version"].to_pylist())


@pytest.fixture
def given(platform_home: Path) -> SideInputs:
    land.create()
    pa_schema = pa.schema([("view", pa.string())])
    write_deltalake(tables.path(tables.SPEED_PARTIALS), pa_schema.empty_table())
    return SideInputs(VIEWS, 0)


def test_a_micro_batch_is_given_what_landed_before_it(given: SideInputs) -> None:
    assert known(given, 1) == []
    for lsn, version in ((1, 7), (2, 8)):
        given.add(lsn, decode(landed(given, lsn, version), project_contracts()).facts)
    assert (known(given, 1), known(given, 2), known(given, 3)) == ([], [7], [7, 8])


def test_what_was_not_added_is_read_from_the_log_and_a_new_start_reads_all_of_it(given: SideInputs) -> None:
    for lsn, version in ((1, 7), (2, 8), (3, 9)):
        landed(given, lsn, version)
    assert known(given, 3) == [7, 8]
    given.add(5, decode(records(5, 11), project_contracts()).facts)
    assert known(given, 4) == [7, 8, 9], "lsn 5 was added before lsn 3 was known, so it waits in the log"
    assert known(SideInputs(VIEWS, 0), 4) == [7, 8, 9]


def test_a_repetition_and_another_topics_record_give_nothing(given: SideInputs) -> None:
    landed(given, 1, 7, 7)
    landed(given, 2, 7)
    landed(given, 3, 8, topic="page_viewed")
    (row,) = given.before(9)[KEY].to_pylist()
    assert (row["lsn"], row["offset"]) == (1, 10), "a model that comes again stays at its first place"


def test_below_the_published_cut_the_stored_facts_say_it(given: SideInputs) -> None:
    facts = decode(records(1, 7), project_contracts()).facts[MODEL.event_type]
    stored = pa.schema([pa.field(f.name, pa.binary()) if f.name == "identity" else f for f in facts.schema])
    write_deltalake(tables.path(tables.facts(MODEL.event_type)), facts.cast(stored))
    landed(given, 1, 66)
    landed(given, 2, 8)
    assert known(SideInputs(VIEWS, 1), 3) == [7, 8]


def test_without_such_views_nothing_is_read(platform_home: Path) -> None:
    assert SideInputs([project_views()["orders_by_day"]], 5).before(9) == {}


def test_of_a_side_input_that_no_run_has_decoded_yet_nothing_stands_below_the_cut(platform_home: Path) -> None:
    """Its schema, and the view that looks it up, came after the publication."""
    land.create()
    assert {rows.num_rows for rows in SideInputs(project_views(), 5).before(6).values()} == {0}
