"""The oracle: small answers by hand, and the same answers as the views give."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import cache

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from spark_jobs.contracts import revision_rows, row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Revisions
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.engine import dedupe, record_outcomes
from spark_jobs.engine.decode import assemble
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.registry.views import project_views
from spark_jobs.sample import generate, producer_ledger
from spark_jobs.sample.block import Block, facts
from spark_jobs.sample.oracle import answers
from spark_jobs.sample.oracle.answers import Oracle, expected
from spark_jobs.sample.reference_decoder.schema_times import times
from spark_jobs.sample.sources import nycflights
from spark_jobs.testing import cases
from tests.landed import LANDED, landed, unlisted
from tests.revised import said_of

START = 1_740_830_400_000  # 2025-03-01T12:00:00Z
TOWN = generate.Plan(7, START, 0.05, late_share=0.1, duplicate_share=0.1, out_of_order_share=0.2, malformed_share=0.05)
NOW = datetime(2025, 3, 1, 15, 7, 7, tzinfo=UTC)
ROUGH = 1e-9
LSNS = 9
CUTS = [1, LSNS // 2, LSNS]
PLACE = [name for name, _ in row_types.COORDINATES]


@cache
def town() -> pa.Table:
    """22 hours of a slow town."""
    return landed(generate.blocks(TOWN, project_contracts(), 4_000), lsns=LSNS)


@cache
def busy() -> pa.Table:
    """The hour before NOW, in which payments on one card come within seconds."""
    plan = replace(TOWN, rate=2.0, late_max_days=0.1, start_ms=int(NOW.timestamp() * 1000) - 4_000_000)
    return landed(generate.blocks(plan, project_contracts(), 8_000), lsns=LSNS)


@cache
def arrived() -> pa.Table:
    """The town's records, each taken by Kafka at one moment: those of the hours and the day before are late."""
    now = pa.repeat(pa.scalar(NOW, row_types.INSTANT), town().num_rows)
    return town().set_column(town().schema.get_field_index("timestamp"), "timestamp", now)


@cache
def judged() -> pa.Table:
    """The town's records, and six models that follow each other."""
    example = project_contracts().of("payments_model_promoted").examples[0]
    ids = [
        {"event_id": f"00000000-0000-4000-8000-{n:012}", "model_version": n, "intercept": n - 4.0} for n in range(1, 7)
    ]
    models = facts("models.payments", [b"m"] * 6, [json.dumps({**example, **one}).encode() for one in ids])
    return landed([*generate.blocks(TOWN, project_contracts(), 4_000), models], lsns=LSNS)


@cache
def flights() -> pa.Table:
    return landed(nycflights.blocks(limit=6_000), lsns=LSNS)


def answer(table: pa.Table) -> list[dict]:
    return cases.in_order(table.to_pylist())


@cache
def facts_of(records: Callable[[], pa.Table]) -> cases.Facts:
    """What counts of the records, by the platform's own code."""
    decoded = assemble.decode(records().select(row_types.RECORD.names), project_contracts())
    lost = [dedupe.first_of_each(rows)[1].select(PLACE) for rows in record_outcomes.countable(decoded.facts).values()]
    return record_outcomes.settled(decoded.facts, pa.concat_tables(lost))


def views_answer(view: str, facts: cases.Facts, cut: int) -> list[dict]:
    """What the platform's own code serves over these facts, built up to `cut` and computed after it."""
    return cases.answer(project_views().served[view], project_views(), *cases.until(facts, cut), NOW)


@pytest.mark.parametrize("view", sorted(answers.ANSWERS))
def test_views_and_oracle_give_the_same_answer_from_the_same_records_at_any_cut(view):
    """Late, repeated, out of order and malformed records among them."""
    records = flights if {*project_views().served[view].event_types} & {*nycflights.EVENT_TYPES} else town
    records = busy if view in ("payments_flagged", "event_anomalies") else records
    records = {"late_and_rejected": arrived, "payments_scored": judged}.get(view, records)
    facts = facts_of(records)
    served, truth = views_answer(view, facts, cut=0), answer(Oracle(records(), now=NOW).expected(view))
    assert len(served) == len(truth) > 2
    for row, true in zip(served, truth, strict=True):
        limits = {name: answers.APPROXIMATE.get(view, {}).get(name, ROUGH) for name in row}
        assert row == {n: pytest.approx(v, rel=limits[n]) if isinstance(v, float | int) else v for n, v in true.items()}
    for cut in CUTS:
        assert views_answer(view, facts, cut) == served, f"cut {cut}"


@pytest.mark.parametrize("view", ["orders_by_day", "word_count", "trades", "sessions", "bus_latest", "airline_names",
                                  "late_and_rejected"])  # fmt: skip
def test_records_that_nobody_listed_give_the_same_answers(view):
    records = {"airline_names": flights, "late_and_rejected": arrived}.get(view, town)()
    assert answer(expected(view, unlisted(records))) == answer(expected(view, records))


@pytest.mark.parametrize(
    "view", ["orders_by_day", "sessions", pytest.param("late_and_rejected", marks=pytest.mark.slow)]
)
def test_views_and_oracle_agree_on_what_somebody_said_of_single_records(view):
    """Retracted, superseded, readmitted, discarded, erased and restored, of those listed and of those that are not."""
    chance, records = random.Random(view), arrived()
    some = [one for one in records.to_pylist() if chance.random() < 0.15]
    said = [revision for one in some for revision in said_of(chance, one, LSNS)]
    history, cut = replace(EVERY_SCHEMA, revisions=Revisions(tuple(sorted(said, key=lambda one: one.lsn)))), LSNS
    found = decode_logged(records.select(row_types.RECORD.names), history, cut).facts
    lost = [dedupe.first_of_each(rows)[1].select(PLACE) for rows in record_outcomes.countable(found).values()]
    served = views_answer(view, record_outcomes.settled(found, pa.concat_tables(lost)), cut=0)
    known = times(ds.dataset(revision_rows.rows(said, date(2026, 3, 1))), cut)
    truth = answer(Oracle(records, now=NOW, times=known).expected(view))
    assert served == truth != answer(Oracle(records, now=NOW).expected(view))
    assert answer(Oracle(unlisted(records), now=NOW, times=known).expected(view)) == truth


def event(event_type: str, number: int, at: str, **fields: object) -> tuple[str, bytes]:
    example = project_contracts().of(event_type).examples[0]
    own = {"event_id": f"00000000-0000-4000-8000-{number:012}", "occurred_at": f"2025-03-01T{at}.000Z"}
    return event_type, json.dumps({**example, **own, **fields}).encode()


def log(*events: tuple[str, bytes], lsns: list[int] | None = None) -> pa.Table:
    """One partition a topic; every record in an lsn of its own, unless `lsns` says in which."""
    blocks: list[Block] = [facts(topic, [b"k"], [value]) for topic, value in events]
    table = landed(blocks, partitions=1)
    order = {value: i for i, (_, value) in reversed(list(enumerate(events)))}
    found = [(lsns or range(1, 99))[order[value]] for value in table["value"].to_pylist()]
    return table.set_column(0, "lsn", pa.array(found, pa.int64())).cast(LANDED)


def at(text: str) -> datetime:
    return datetime.fromisoformat(f"2025-03-01T{text}").replace(tzinfo=UTC)


def test_trades_pair_wait_and_supersede_as_in_the_toy_market():
    records = log(
        event("order_placed", 1, "10:00:00", order_id="a", colour="red"),
        event("order_placed", 2, "10:00:01", order_id="b", colour="blue"),
        event("order_executed", 3, "10:00:02", execution_id="x", venue="z"),
        event("order_executed", 4, "10:00:03", execution_id="y", venue="x"),
    )
    rows = [tuple(row.values()) for row in expected("trades", records).to_pylist()]
    assert rows == [
        (1001, "superseded", at("10:00:00"), at("10:00:01"), "a", "red", None, None),
        (1001, "traded", at("10:00:01"), at("10:00:02"), "b", "blue", "x", "z"),
        (1001, "waiting", at("10:00:03"), None, None, None, "y", "x"),
    ]


def test_a_session_ends_after_more_than_thirty_minutes_of_silence():
    records = log(
        event("page_viewed", 1, "10:00:00", url="/a"),
        event("page_viewed", 2, "10:30:00", url="/b"),
        event("page_viewed", 3, "11:00:01", url="/c"),
        event("page_viewed", 4, "10:10:00", url="/d", user_id=8),
    )
    rows = [tuple(row.values()) for row in expected("sessions", records).to_pylist()]
    assert rows == [
        (7, at("10:00:00"), at("10:30:00"), 2, "/a", "/b"),
        (7, at("11:00:01"), at("11:00:01"), 1, "/c", "/c"),
        (8, at("10:10:00"), at("10:10:00"), 1, "/d", "/d"),
    ]


def test_a_turnaround_is_an_arrival_and_the_departure_right_after_it():
    records = log(
        event("flight_arrived", 1, "10:00:00", tailnum="N1", flight_id="in-1", dest="JFK"),
        event("flight_arrived", 2, "11:00:00", tailnum="N1", flight_id="in-2", dest="LGA"),
        event("flight_departed", 3, "11:45:59", tailnum="N1", flight_id="out", origin="LGA"),
        event("flight_departed", 4, "12:00:00", tailnum="N2", flight_id="other"),
    )
    (row,) = expected("aircraft_turnarounds", records).to_pylist()
    assert tuple(row.values()) == ("N1", "LGA", "in-2", at("11:00:00"), "LGA", "out", at("11:45:59"), 45)


def test_the_first_of_an_event_id_counts_by_lsn_before_offset():
    twice = [event("bus_position_reported", 1, "10:00:00", lat=lat) for lat in (1.5, 2.5)]
    assert expected("bus_latest", log(*twice))["lat"].to_pylist() == [1.5]
    assert expected("bus_latest", log(*twice, lsns=[2, 1]))["lat"].to_pylist() == [2.5]


def test_events_without_id_all_count():
    nameless = [event("sentence_posted", 1, "10:00:00", text="one")[1]] * 2
    values = [
        json.dumps({k: v for k, v in json.loads(value).items() if k != "event_id"}).encode() for value in nameless
    ]
    records = landed([facts("sentence_posted", [b"k", b"k"], values)], partitions=1)
    for each in (records, unlisted(records)):
        assert expected("word_count", each).to_pylist() == [{"word": "one", "occurrences": 2}]


def test_the_last_report_of_one_moment_is_the_one_with_the_higher_position():
    both = [event("bus_position_reported", n, "10:00:00", lat=n) for n in (1, 2)]
    assert expected("bus_latest", log(*both))["lat"].to_pylist() == [2.0]


def test_only_records_before_the_bounds_count():
    records = log(*[event("order_placed", n, "10:00:00") for n in range(5)])
    assert expected("orders_by_day", records, {("order_placed", 0): 3})["orders"].to_pylist() == [3]
    assert expected("orders_by_day", records, {})["orders"].to_pylist() == []
    assert expected("orders_by_day", records)["orders"].to_pylist() == [5]


def test_an_airline_is_gone_after_its_tombstone_and_back_after_a_new_name():
    first, second = [event("airline_changed", n, "10:00:00", name=f"name {n}")[1] for n in (1, 2)]
    for values, names in (
        ([first, None], []),
        ([first, None, second], ["name 2"]),
        ([first, second, first], ["name 2"]),
        ([first, None, first], []),
    ):
        records = landed([facts("airline_changed", [b"UA"] * len(values), values)], partitions=1)
        assert expected("airline_names", unlisted(records))["name"].to_pylist() == names


def test_a_ledger_file_without_lsn_or_headers_is_enough(tmp_path):
    pq.write_table(town().select(producer_ledger.PRODUCER_LEDGER.names), tmp_path / "0001.parquet")
    assert answer(expected("trades", f"{tmp_path}/*.parquet")) == answer(expected("trades", town()))


def test_a_listed_record_that_is_no_json_is_a_fault_of_the_ledger():
    records = landed([facts("sentence_posted", [b"1"], [b""])])
    with pytest.raises(ValueError, match="sentence_posted"):
        expected("word_count", records)


def test_a_view_that_it_does_not_know_is_a_key_error():
    with pytest.raises(KeyError):
        expected("nothing", town())
