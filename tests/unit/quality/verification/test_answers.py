"""Kafka, and the answers that readers see, held against the log and the oracle."""

import json
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.contracts.revisions import Action, Place, Revision
from spark_jobs.engine.chained_view import ChainedView
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import Source
from spark_jobs.quality.reconciliation.causes import UnbuiltCauses
from spark_jobs.quality.verification import answers, completeness, verify
from spark_jobs.quality.verification.expected import SecondWay
from spark_jobs.quality.verification.findings import Finding, State
from spark_jobs.quality.verification.scene import Scene
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables
from tests.local_platform import START, Platform, change, event, market
from tests.unit.quality.spoilt import REPEATED, VIEWS, Edit, Row, double, findings, lose, of_record

NOW = START + timedelta(minutes=20)


def kafka(platform: Platform, available: dict[tuple[str, int], tuple[int, int]], count: int | None) -> Finding:
    scene = Scene(ledger.open(), platform.views)
    return completeness.offsets_are_in_the_log_once(scene.con, available, lambda gap: count)


def test_kafka_and_the_log_agree_where_each_offset_is_there_once(platform: Platform) -> None:
    found = kafka(platform, {("order_placed", 0): (0, 9)}, 0)
    assert found.state is State.HOLDS and found.note == "lag 3"


def test_records_that_kafka_has_and_the_log_lacks_are_named(platform: Platform) -> None:
    change(tables.MASTER_LOG, lose(lambda row: row["kind"] == "record" and row["topic"] == "order_placed"
                                   and row["offset"] in (1, 5)))  # fmt: skip
    found = kafka(platform, {}, 1)
    assert found.first == (
        "order_placed partition 0: 1 records of offsets [1, 2) are not in the log",
        "order_placed partition 0: 1 records of offsets [5, 6) are not in the log",
    )
    assert kafka(platform, {}, 0).state is State.HOLDS
    unknown = kafka(platform, {}, None)
    assert unknown.state is State.HOLDS and "2 offsets of gaps are no longer in Kafka" in unknown.note


def test_a_record_twice_in_the_log_and_a_log_that_begins_late_are_named(platform: Platform) -> None:
    change(tables.MASTER_LOG, double(of_record(5)))
    assert kafka(platform, {}, 0).first == ("order_placed partition 0 offset 5 is in the log 2 times",)

    def begin_late(rows: list[Row]) -> list[Row]:
        for row in rows:
            for one in row["batch"]["ranges"] if row["batch"] and row["lsn"] == 1 else ():
                one["from_offset"] = 1 if one["topic"] == "page_viewed" else 0
        return rows

    change(tables.MASTER_LOG, begin_late)
    said = kafka(platform, {("page_viewed", 0): (0, 3)}, 0).first
    assert "page_viewed partition 0: the log begins at 1, Kafka at 0" in said


def compared(platform: Platform, view_id: str, edit: Edit = lambda rows: rows,
             sources: dict[str, Source] | None = None) -> Finding:  # fmt: skip
    """I3 of one view, with the answer of the tables' files, edited, in the place of Thrift's."""
    store = ledger.open()
    unbuilt = Source(None, None, 0, None)
    known = dict.fromkeys((view.id for view in platform.views), unbuilt)
    merged = LocalAnswers(platform.views, sources or store.sources(0) or known, platform.lsn, NOW)
    view = platform.views.served[view_id]
    answer = merged.con.sql(merged.answer(view)).to_arrow_table()
    way = SecondWay(merged, settings().home)
    shown = pa.Table.from_pylist(edit(answer.to_pylist()), schema=answer.schema)
    found = answers.compared(view, shown, way.expected(view), merged, lambda cut: UnbuiltCauses(cut, platform.lsn))
    if found.state is State.HOLDS or not isinstance(view, ChainedView):
        return found
    return answers.inherited(view, shown, found, compared(platform, view.base.name, sources=sources), merged)


@pytest.fixture(params=["the oracle", "recomputing"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the project's oracle, and with one that knows no view."""
    if request.param == "recomputing":
        monkeypatch.setattr("spark_jobs.sample.oracle.answers.ANSWERS", {})
    return str(request.param)


@pytest.mark.parametrize("view_id", VIEWS)
def test_every_served_view_is_what_either_way_says(platform: Platform, way: str, view_id: str) -> None:
    found = compared(platform, view_id)
    assert found.state is State.HOLDS and found.checked > 0, found
    assert found.note.startswith(f"by {way}; ")


@pytest.mark.parametrize(
    ("view_id", "edit", "said"),
    [
        ("orders_by_day", lambda rows: [{**row, "orders": row["orders"] + 1} for row in rows], "orders 4 ({}) 5"),
        ("sessions", lambda rows: rows[1:], "only in {}"),
        ("word_count", lambda rows: [*rows, {"word": "ghost", "occurrences": 1}], "word=ghost: only in served"),
        (
            "delay_by_carrier_day",
            lambda rows: [{**row, "carrier_name": "x"} for row in rows],
            "carrier_name United Air Lines Inc. ({}) x",
        ),
    ],
)
def test_a_served_row_that_the_records_do_not_give_is_named(
    platform: Platform, way: str, view_id: str, edit: Edit, said: str
) -> None:
    found = compared(platform, view_id, edit)
    assert found.state is State.BREACH
    assert said.format(way) in found.first[0], found.first


@pytest.mark.parametrize(
    ("view_id", "column"),
    [
        ("orders_by_day", "orders"),
        ("average_price_sliding", "orders"),
        ("items_sold_last_hour", "units"),
        ("top_sellers", "rank"),
        ("late_and_rejected", "records"),
    ],
)
def test_a_duplicate_that_speed_forgot_is_within_the_limits_until_the_next_build(
    platform: Platform, view_id: str, column: str
) -> None:
    platform.land(market(4))
    platform.land(market(5))
    platform.land([event("order_placed", START, REPEATED)])
    (settings().producer_ledger / "run" / "0001.parquet").unlink()
    found = compared(platform, view_id)
    assert found.state is State.HOLDS
    rows = {"average_price_sliding": 10}.get(view_id, 1)
    assert f"within a named limit: {rows} rows, duplicate_outside_window" in found.note
    wrong = compared(platform, view_id, lambda rows: [{**row, column: row[column] + 1} for row in rows])
    assert wrong.state is State.BREACH
    assert compared(platform, view_id, sources=platform.build()).note.endswith("cut 6")


def retract(platform: Platform, offset: int) -> None:
    """Land that an order does not count; from the next build on it does not."""
    facts = duckdb_reader.dataset(tables.facts("order_placed")).to_table(filter=ds.field("offset") == offset)
    [fact] = facts.select(["lsn", "identity", "event_id"]).to_pylist()
    where = Place(fact["lsn"], "order_placed", 0, offset)
    about = {"identity": fact["identity"], "event_type": "order_placed", "event_id": fact["event_id"]}
    platform.land(said=[Revision(0, Action.RETRACT, where, "why", "ada", START, "r", **about)])


def test_views_of_two_cuts_are_each_held_to_what_was_said_by_their_own(platform: Platform, way: str) -> None:
    """As after a rollback to before one of them was there, over a correction."""
    with closing(ledger.open()) as store:
        before = store.sources(0)
        retract(platform, 0)
        mixed = {**before, "orders_by_hour": platform.build()["orders_by_hour"]}
        for view_id, cut in {"orders_by_day": 2, "orders_by_hour": 4}.items():
            found = compared(platform, view_id, sources=mixed)
            assert (found.state, found.note) == (State.HOLDS, f"by {way}; head 4, cut {cut}")
        store.begin_run(Run(run_id="taken back", cut=4))
        store.progress("taken back", "decode")
        store.finish_publication(store.begin_publication("rollback", mixed, cut=2, restores=0).id)
    laws = ("facts are what", "orders_by_day is what", "orders_by_hour is what")
    [facts], [by_day], [by_hour] = (findings(platform, law) for law in laws)
    assert (facts.state, by_day.state) == (State.HOLDS, State.HOLDS)
    assert (by_hour.state, by_hour.note) == (State.ABSENT, "it is built at cut 4, what readers see at 2")


def test_a_view_over_a_view_may_differ_by_the_limits_of_the_other_and_no_more(platform_home: Path) -> None:
    platform = Platform(["search_click_through"])
    platform.land([event("search_performed", START, REPEATED)])
    for _ in range(3):
        platform.land([event("search_performed", START)])
    assert compared(platform, "search_rate_by_hour").note == "by the oracle; head 4, cut 0"
    platform.land([event("search_performed", START, REPEATED)])
    found = compared(platform, "search_rate_by_hour")
    assert found.state is State.HOLDS
    limit = "within a named limit: 1 rows, duplicate_outside_window"
    assert f"of search_click_through: by the oracle; head 5, cut 0; {limit}" in found.note
    wrong = compared(platform, "search_rate_by_hour", lambda rows: [{**row, "searches": 3} for row in rows])
    assert wrong.state is State.BREACH


def test_the_command_says_what_it_could_not_look_at(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_THRIFT_PORT", "1")
    monkeypatch.setattr("spark_jobs.registry.views.project_views", lambda: Views(platform.views.all))
    settings.cache_clear()
    asked = CliRunner().invoke(main, ["verify", "--json", "--only", "I3", "--only", "I4"])
    assert asked.exit_code == 2, asked.output
    told = {(one["invariant"], one["state"]) for one in json.loads(asked.stdout)}
    assert told == {("I3", "unable"), ("I4", "holds")}
    change(tables.MASTER_LOG, lose(lambda row: row["lsn"] == 2))
    shown = CliRunner().invoke(main, ["verify", "--only", "I4"])
    assert shown.exit_code == 1 and "I4: lsn 2 is missing" in shown.output


def test_before_anything_landed_nothing_is_claimed_to_hold(platform_home: Path) -> None:
    scene = Scene(ledger.open(), Platform(VIEWS).views)
    states = {law.looked(check).state for law, check in verify.checks(scene) if law != completeness.OFFSETS}
    assert states <= {State.ABSENT, State.UNABLE}
