"""Each law of `verify` holds on a sound platform, and is broken by name when one thing of it is wrong."""

import dataclasses
import shutil

import pytest

from spark_jobs.contracts import row_types
from spark_jobs.definitions.stored_view import batch_tables
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.source import Source
from spark_jobs.quality.verification.findings import State
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import tables
from tests.local_platform import START, Platform, change
from tests.unit.quality.spoilt import VIEWS, Edit, Row, alter, broken, double, findings, lose, of_record


def test_a_sound_platform_keeps_every_law(platform: Platform) -> None:
    found = findings(platform)
    states = {one.law: one.state for one in found}
    assert states.pop("airline_names is what its facts give") is State.ABSENT  # no airline below the cut
    assert states.pop("delay_by_carrier_day is what its facts give") is State.ABSENT
    assert set(states.values()) == {State.HOLDS}, states
    assert all(one.checked for one in found if one.state is State.HOLDS)


LOST = "below the cut a record is a fact, a quarantined record or a duplicate"


@pytest.mark.parametrize(
    ("table", "edit", "law", "said"),
    [
        (tables.facts("order_placed"), lose(of_record(0)), LOST, "offset 0 (lsn 1) is neither fact, quarantined"),
        (tables.QUARANTINE, lose(of_record(2)), LOST, "order_placed partition 0 offset 2 (lsn 1) is neither"),
        (tables.DUPLICATES, lose(of_record(4)), LOST, "order_placed partition 0 offset 4 (lsn 2) is neither"),
        (
            tables.facts("record_noted"),
            lose(of_record(2)),
            "facts are what the log gives",
            "lsn=1, topic=order_placed, partition=0, offset=2",
        ),
        (tables.facts("order_placed"), double(of_record(0)), LOST, "is fact of order_placed and fact of order_placed"),
        (
            tables.facts("page_viewed"),
            alter(of_record(0, "page_viewed"), offset=99),
            LOST,
            "offset 99 (lsn 1) is not in",
        ),
        (tables.facts("order_placed"), alter(of_record(3), identity=b"0" * 16, offset=4), LOST, "duplicate and fact"),
        (tables.MASTER_LOG, alter(of_record(0), value=b"{}"), "bytes are the producer's", "has another value than"),
        (
            tables.MASTER_LOG,
            alter(of_record(0), headers=[{"key": "schema_version", "value": b"9"}]),
            "bytes are the producer's",
            "order_placed partition 0 offset 0 has other headers than were sent",
        ),
        (tables.MASTER_LOG, alter(of_record(0), key=b"k"), "bytes are the producer's", "offset 0 has another key than"),
        (tables.MASTER_LOG, lose(of_record(5)), "bytes are the producer's", "offset 5 was sent and is not in the log"),
        (
            tables.MASTER_LOG,
            lose(of_record(5)),
            "lsns are contiguous, each with one control row that counts its records",
            "lsn 3 says 7 records and has 6",
        ),
        (
            tables.MASTER_LOG,
            lose(lambda row: row["lsn"] == 2),
            "lsns are contiguous, each with one control row that counts its records",
            "lsn 2 is missing",
        ),
        (
            tables.MASTER_LOG,
            double(lambda row: row["lsn"] == 2 and row["kind"] == row_types.BATCH_ROW),
            "lsns are contiguous, each with one control row that counts its records",
            "lsn 2 was landed 2 times",
        ),
        (
            tables.MASTER_LOG,
            alter(of_record(5), offset=50),
            "every record lies in the range of its lsn",
            "order_placed partition 0 offset 50 is at lsn 3, which did not take it",
        ),
        (
            tables.facts("order_placed"),
            alter(of_record(3), identity=b"1" * 16),
            "facts are what the log gives",
            "facts.order_placed: lsn=2, topic=order_placed, partition=0, offset=3: identity",
        ),
        (
            tables.facts("order_placed"),
            alter(of_record(3), quantity=77),
            "facts are what the log gives",
            "quantity 77 (stored) 2 (recomputed)",
        ),
    ],
)
def test_one_wrong_row_breaks_its_law_by_name(platform: Platform, table: str, edit: Edit, law: str, said: str) -> None:
    change(table, edit)
    found = broken(platform, law)
    assert any(said in one for one in found), found


def test_two_facts_of_one_event_break_the_law_of_once(platform: Platform) -> None:
    def copy_identity(rows: list[Row]) -> list[Row]:
        return [{**row, "identity": rows[0]["identity"], "event_id": rows[0]["event_id"]} for row in rows]

    change(tables.facts("page_viewed"), copy_identity)
    assert "is 2 facts" in broken(platform, "no event is two facts")[0]


@pytest.mark.parametrize(("start", "said"), [(2, "are in two micro-batches"), (4, "are in no micro-batch")])
def test_an_offset_range_that_does_not_continue_is_named(platform: Platform, start: int, said: str) -> None:
    def shift(rows: list[Row]) -> list[Row]:
        for row in rows:
            for one in row["batch"]["ranges"] if row["batch"] and row["lsn"] == 2 else ():
                one["from_offset"] = start if one["topic"] == "order_placed" else one["from_offset"]
        return rows

    change(tables.MASTER_LOG, shift)
    assert said in broken(platform, "offset ranges chain without hole or overlap")[0]


def test_a_hole_that_an_operator_accepted_is_told_and_no_breach(platform: Platform) -> None:
    def accept(rows: list[Row]) -> list[Row]:
        for row in rows:
            if row["batch"] and row["lsn"] == 3:
                row["batch"]["accepted_loss"] = "retention took it"
                for one in row["batch"]["ranges"]:
                    one["from_offset"] += 0 if one["topic"] != "sentence_posted" else -1
        return rows

    change(tables.MASTER_LOG, accept)
    [chained] = findings(platform, "offset ranges chain without hole or overlap")
    assert chained.state is State.HOLDS and "accepted by an operator: retention took it" in chained.note


@pytest.mark.parametrize(
    ("views", "said"), [([], "has no partials"), ([VIEWS[0] + "_v1", VIEWS[0] + "_v1"], "was computed 2 times")]
)
def test_coverage_with_a_hole_or_an_overlap_is_named(platform: Platform, views: list[str], said: str) -> None:
    def cover(rows: list[Row]) -> list[Row]:
        for row in rows:
            if row["view"] == row_types.BATCH_ROW and row["lsn"] == 3:
                others = [one for one in row["control"]["views"] if one != "orders_by_day_v1"]
                row["control"]["views"] = [*others, *views]
        return rows

    change(tables.SPEED_PARTIALS, cover)
    law = "every served view has partials for (cut, head], once per lsn"
    assert f"view orders_by_day_v1 at lsn 3 {said}" in broken(platform, law)


@pytest.mark.parametrize(
    ("view", "table", "field"),
    [
        ("orders_by_day", batch_tables("orders_by_day")[0], "orders"),
        ("sessions", batch_tables("sessions")[2], "pages"),
        ("sessions", batch_tables("sessions")[2], "stretch_end"),
        ("trades", batch_tables("trades")[1], "ts"),
    ],
)
def test_a_build_that_its_facts_do_not_give_is_named(platform: Platform, view: str, table: str, field: str) -> None:
    version = change(table, lambda rows: [{**rows[0], field: rows[0][field] + 1}, *rows[1:]])
    store = ledger.open()
    sources = store.sources(0)
    place = "results_version" if table.endswith("_results") else "batch_version"
    sources[view] = dataclasses.replace(sources[view], **{place: version})
    store.finish_publication(store.begin_publication("batch", sources, cut=2).id)
    assert field in broken(platform, f"{view} is what its facts give")[0]


def test_rows_older_than_the_horizon_are_no_part_of_a_build(platform: Platform) -> None:
    store = ledger.open()
    sources = platform.build(horizon=START)
    store.finish_publication(store.begin_publication("batch", sources, cut=platform.lsn).id)
    recomputed = {one.law: one for one in findings(platform) if one.invariant == "I7"}
    assert {one.state for one in recomputed.values()} == {State.HOLDS}, recomputed
    assert _stored(platform, sources) < _stored(platform, platform.build())


def _stored(platform: Platform, sources: dict[str, Source]) -> int:
    merged = LocalAnswers(platform.views, sources, platform.lsn)
    return len(merged.con.execute(f"FROM {merged.built(platform.views['sessions'])[0]}").fetchall())


def test_an_event_type_that_came_after_the_last_build_has_no_facts_and_breaks_nothing(platform: Platform) -> None:
    shutil.rmtree(tables.path(tables.facts("ad_shown")))
    assert not [one for one in findings(platform) if one.state in (State.BREACH, State.UNABLE)]
    shutil.rmtree(tables.path(tables.facts("page_viewed")))
    assert broken(platform, "facts are what the log gives")
