"""Each law of `verify` holds on a sound platform, and is broken by name when one thing of it is wrong."""

import copy
import dataclasses
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from spark_jobs import tables
from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.quality import accounts, served, verify
from spark_jobs.quality.findings import Finding, State, looked
from spark_jobs.quality.limits import Unbuilt
from spark_jobs.quality.oracle import Oracle
from spark_jobs.registry import Views
from spark_jobs.serving.merged import Merged
from spark_jobs.serving.render import Source
from spark_jobs.settings import settings
from tests.unit.small_platform import START, Platform, change, event, market

VIEWS = ["orders_by_day", "orders_by_hour", "sessions", "trades", "word_count", "delay_by_carrier_day", "airline_names"]
REPEATED = "00000000-0000-4000-8000-000000000001"
Row = dict[str, Any]
Edit = Callable[[list[Row]], list[Row]]


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Platform]]:
    """Three micro-batches, two of them built and published; a duplicate and a malformed record; a producers' ledger."""
    patch, home = pytest.MonkeyPatch(), tmp_path_factory.mktemp("template")
    patch.setenv("TIDEMARK_HOME", str(home))
    settings.cache_clear()
    made = Platform(VIEWS)
    made.land([*market(0), event("order_placed", START, REPEATED), ("order_placed", b"{")])
    made.land([*market(1), event("order_placed", START, REPEATED)])
    store = ledger.open()
    store.finish_publication(store.begin_publication("batch", made.build(), cut=2).id)
    made.land([*market(2), event("flight_departed", START), event("airline_changed", START)])
    _write_ledger()
    store.close()
    yield home, made
    patch.undo()
    settings.cache_clear()


@pytest.fixture
def platform(template: tuple[Path, Platform], platform_home: Path) -> Platform:
    """A copy of the template, to be spoiled."""
    home, made = template
    shutil.copytree(home, platform_home, dirs_exist_ok=True)
    forked = copy.copy(made)
    forked.offsets, forked.recent = dict(made.offsets), list(made.recent)
    return forked


def _write_ledger() -> None:
    from spark_jobs import warehouse

    log = warehouse.dataset(tables.MASTER_LOG).to_table()
    sent = log.filter(pa.compute.equal(log["kind"], "record")).select(tables.PRODUCER_LEDGER.names[:6])
    folder = settings().producer_ledger / "run"
    folder.mkdir(parents=True)
    sent = sent.append_column("outcome", pa.nulls(len(sent), pa.string()))
    pq.write_table(sent.append_column("reason", pa.nulls(len(sent), pa.string())), folder / "0001.parquet")


def findings(platform: Platform) -> list[Finding]:
    """Every check but those of Kafka and of served answers."""
    scene = verify.Scene(ledger.open(), platform.views)
    return [looked(*one) for one in verify.checks(scene) if one[1] != accounts.OFFSETS]


def broken(platform: Platform) -> dict[str, tuple[str, ...]]:
    """The law of each breach, and what was said."""
    return {one.law: one.first for one in findings(platform) if one.state is State.BREACH}


def of_record(offset: int, topic: str = "order_placed") -> Callable[[Row], bool]:
    return lambda row: row.get("topic") == topic and row.get("offset") == offset


def lose(which: Callable[[Row], bool]) -> Edit:
    return lambda rows: [row for row in rows if not which(row)]


def double(which: Callable[[Row], bool]) -> Edit:
    return lambda rows: [*rows, *(row for row in rows if which(row))]


def alter(which: Callable[[Row], bool], **fields: Any) -> Edit:
    return lambda rows: [{**row, **fields} if which(row) else row for row in rows]


def test_a_sound_platform_keeps_every_law(platform: Platform) -> None:
    found = findings(platform)
    assert broken(platform) == {}
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
        (tables.facts("order_placed"), double(of_record(0)), LOST, "is fact of order_placed and fact of order_placed"),
        (
            tables.facts("page_viewed"),
            alter(of_record(0, "page_viewed"), offset=99),
            LOST,
            "offset 99 (lsn 1) is not in",
        ),
        (tables.facts("order_placed"), alter(of_record(3), identity=b"0" * 16, offset=4), LOST, "duplicate and fact"),
        (tables.MASTER_LOG, alter(of_record(0), value=b"{}"), "bytes are the producer's", "has another value than"),
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
            double(lambda row: row["lsn"] == 2 and row["kind"] == tables.BATCH_ROW),
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
            "quantity 77 (stored) 2 (rebuilt)",
        ),
    ],
)
def test_one_wrong_row_breaks_its_law_by_name(platform: Platform, table: str, edit: Edit, law: str, said: str) -> None:
    change(table, edit)
    found = broken(platform)
    assert law in found, found
    assert any(said in one for one in found[law]), found[law]


def test_two_facts_of_one_event_break_the_law_of_once(platform: Platform) -> None:
    def copy_identity(rows: list[Row]) -> list[Row]:
        return [{**row, "identity": rows[0]["identity"], "event_id": rows[0]["event_id"]} for row in rows]

    change(tables.facts("page_viewed"), copy_identity)
    assert "is 2 facts" in broken(platform)["no event is two facts"][0]


@pytest.mark.parametrize(("start", "said"), [(2, "are in two micro-batches"), (4, "are in no micro-batch")])
def test_an_offset_range_that_does_not_continue_is_named(platform: Platform, start: int, said: str) -> None:
    def shift(rows: list[Row]) -> list[Row]:
        for row in rows:
            for one in row["batch"]["ranges"] if row["batch"] and row["lsn"] == 2 else ():
                one["from_offset"] = start if one["topic"] == "order_placed" else one["from_offset"]
        return rows

    change(tables.MASTER_LOG, shift)
    assert said in broken(platform)["offset ranges chain without hole or overlap"][0]


def test_a_hole_that_an_operator_accepted_is_told_and_no_breach(platform: Platform) -> None:
    def accept(rows: list[Row]) -> list[Row]:
        for row in rows:
            if row["batch"] and row["lsn"] == 3:
                row["batch"]["accepted_loss"] = "retention took it"
                for one in row["batch"]["ranges"]:
                    one["from_offset"] += 0 if one["topic"] != "sentence_posted" else -1
        return rows

    change(tables.MASTER_LOG, accept)
    chained = next(one for one in findings(platform) if one.law.startswith("offset ranges"))
    assert chained.state is State.HOLDS and "accepted by an operator: retention took it" in chained.note


@pytest.mark.parametrize(
    ("views", "said"), [([], "has no partials"), ([VIEWS[0] + "_v1", VIEWS[0] + "_v1"], "was computed 2 times")]
)
def test_coverage_with_a_hole_or_an_overlap_is_named(platform: Platform, views: list[str], said: str) -> None:
    def cover(rows: list[Row]) -> list[Row]:
        for row in rows:
            if row["view"] == tables.BATCH_ROW and row["lsn"] == 3:
                others = [one for one in row["control"]["views"] if one != "orders_by_day_v1"]
                row["control"]["views"] = [*others, *views]
        return rows

    change(tables.SPEED_PARTIALS, cover)
    assert (
        f"view orders_by_day_v1 at lsn 3 {said}"
        in broken(platform)["every served view has partials for (cut, head], once per lsn"]
    )


@pytest.mark.parametrize(
    ("view", "table", "field"),
    [
        ("orders_by_day", tables.batch("orders_by_day"), "orders"),
        ("sessions", tables.batch_results("sessions"), "pages"),
        ("sessions", tables.batch_results("sessions"), "stretch_end"),
        ("trades", tables.batch_rows("trades"), "ts"),
    ],
)
def test_a_build_that_its_facts_do_not_give_is_named(platform: Platform, view: str, table: str, field: str) -> None:
    version = change(table, lambda rows: [{**rows[0], field: rows[0][field] + 1}, *rows[1:]])
    store = ledger.open()
    sources = store.sources(0)
    place = "results_version" if table.endswith("_results") else "batch_version"
    sources[view] = dataclasses.replace(sources[view], **{place: version})
    store.finish_publication(store.begin_publication("batch", sources, cut=2).id)
    assert field in broken(platform)[f"{view} is what its facts give"][0]


def test_rows_older_than_the_horizon_are_no_part_of_a_build(platform: Platform) -> None:
    store = ledger.open()
    sources = platform.build(horizon=START)
    store.finish_publication(store.begin_publication("batch", sources, cut=platform.lsn).id)
    rebuilt = {one.law: one for one in findings(platform) if one.invariant == "I7"}
    assert {one.state for one in rebuilt.values()} == {State.HOLDS}, rebuilt
    assert _stored(platform, sources) < _stored(platform, platform.build())


def _stored(platform: Platform, sources: dict[str, Source]) -> int:
    merged = Merged(platform.views, sources, platform.lsn)
    return len(merged.con.execute(merged.stored(platform.views["sessions"]) or "").fetchall())


def kafka(platform: Platform, available: dict[tuple[str, int], tuple[int, int]], count: int | None) -> Finding:
    scene = verify.Scene(ledger.open(), platform.views)
    return accounts.offsets_are_in_the_log_once(scene.con, available, lambda gap: count)


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
    merged = Merged(platform.views, sources or store.sources(0) or dict.fromkeys(VIEWS, unbuilt), platform.lsn)
    view = platform.views[view_id]
    answer = merged.con.sql(merged.answer(view)).to_arrow_table()
    file = settings().home / "records.parquet"
    log = served.warehouse.dataset(tables.MASTER_LOG)
    served.records(log, verify.ledger_files(), platform.lsn, file)
    expected = Oracle(str(file), served.until(log, platform.lsn)).expected(view.name)
    shown = pa.Table.from_pylist(edit(answer.to_pylist()), schema=answer.schema)
    return served.compared(view, shown, expected, merged, lambda one: Unbuilt(merged.sources[one.id].cut, platform.lsn))


@pytest.mark.parametrize("view_id", VIEWS)
def test_every_served_view_is_what_the_oracle_says(platform: Platform, view_id: str) -> None:
    found = compared(platform, view_id)
    assert found.state is State.HOLDS and found.checked > 0, found


@pytest.mark.parametrize(
    ("view_id", "edit", "said"),
    [
        ("orders_by_day", lambda rows: [{**row, "orders": row["orders"] + 1} for row in rows], "orders 4 (oracle) 5"),
        ("sessions", lambda rows: rows[1:], "only in oracle"),
        ("word_count", lambda rows: [*rows, {"word": "ghost", "occurrences": 1}], "word=ghost: only in served"),
        (
            "delay_by_carrier_day",
            lambda rows: [{**row, "carrier_name": "x"} for row in rows],
            "carrier_name United Air Lines Inc. (oracle) x",
        ),
    ],
)
def test_a_served_row_that_the_oracle_does_not_give_is_named(
    platform: Platform, view_id: str, edit: Edit, said: str
) -> None:
    found = compared(platform, view_id, edit)
    assert found.state is State.BREACH
    assert said in found.first[0], found.first


def test_a_duplicate_that_speed_forgot_is_within_the_limits_until_the_next_build(platform: Platform) -> None:
    platform.land(market(4))
    platform.land(market(5))
    platform.land([event("order_placed", START, REPEATED)])
    (settings().producer_ledger / "run" / "0001.parquet").unlink()
    found = compared(platform, "orders_by_day")
    assert found.state is State.HOLDS
    assert "within a named limit: 1 rows, duplicate_outside_window" in found.note
    wrong = compared(platform, "orders_by_day", lambda rows: [{**row, "orders": row["orders"] + 1} for row in rows])
    assert wrong.state is State.BREACH
    assert compared(platform, "orders_by_day", sources=platform.build()).note.endswith("cut 6")


def test_the_command_says_what_it_could_not_look_at(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_THRIFT_PORT", "1")
    monkeypatch.setattr("spark_jobs.registry.views", lambda: Views(platform.views.all))
    settings.cache_clear()
    asked = CliRunner().invoke(main, ["verify", "--json", "--only", "I3", "--only", "I4"])
    assert asked.exit_code == 2, asked.output
    told = {(one["invariant"], one["state"]) for one in json.loads(asked.stdout)}
    assert told == {("I3", "unable"), ("I4", "holds")}
    change(tables.MASTER_LOG, lose(lambda row: row["lsn"] == 2))
    shown = CliRunner().invoke(main, ["verify", "--only", "I4"])
    assert shown.exit_code == 1 and "I4: lsn 2 is missing" in shown.output


def test_before_anything_landed_nothing_is_claimed_to_hold(platform_home: Path) -> None:
    scene = verify.Scene(ledger.open(), Platform(VIEWS).views)
    assert {looked(*one).state for one in verify.checks(scene) if one[1] != accounts.OFFSETS} <= {
        State.ABSENT,
        State.UNABLE,
    }
