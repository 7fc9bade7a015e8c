"""A run of Flink or of Pathway in DRAIN counts only with right answers."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.sample.producer_ledger import PRODUCER_LEDGER
from tests.bench import drain
from tests.bench.checked import check
from tests.bench.expected import EXPECTED
from tests.bench.flink import peer, sql
from tests.bench.flink.views import fifteen, six
from tests.bench.pathway import peer as pathway

ORDER = {"store_id": 3, "user_id": 7, "product_id": 9, "quantity": 2, "unit_price_cents": 50, "colour": "red"}
SOUND = {**ORDER, "occurred_at": "2026-01-02T03:04:05.678Z"}
MINUTES = ["02:55", "02:56", "02:57", "02:58", "02:59", "03:00", "03:01", "03:02", "03:03", "03:04"]
RIGHT = {
    "orders_by_day": "3,2026-01-02,2,200\n",
    "orders_by_hour": '3,"2026-01-02 03",2,200,1\n',
    "orders_by_colour": "red,2,50.0\n",
    "top_sellers": "2026-01-02,9,2,4\n",
    "stock_on_hand": "9,2,0,4\n",
    "average_price_sliding": "".join(f"red,2026-01-02 {minute}:00.000,2,50.0\n" for minute in MINUTES),
    "event_rates": "order_placed,2026-01-02 03:04:00.000,2\n",
    "landed_order_placed": "order_placed,2\n",
}


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    """A ledger: an order, the same again, one that is refused."""
    file = tmp_path / "ledger/run/0001.parquet"
    file.parent.mkdir(parents=True)
    value = json.dumps(SOUND).encode()
    outcomes = {"fact": value, "duplicate": value, "rejected": b"\xff"}
    rows = [
        dict.fromkeys(PRODUCER_LEDGER.names) | {"topic": "order_placed", "outcome": outcome, "value": sent}
        for outcome, sent in outcomes.items()
    ]
    pq.write_table(pa.Table.from_pylist(rows, PRODUCER_LEDGER), file)
    return tmp_path / "ledger"


def answered(folder: Path, answers: Mapping[str, str]) -> dict[str, str]:
    """What DuckDB selects from Flink's files: `answers`, and nothing for the other tables."""
    answered_by = sql.answers(fifteen())
    for name in answered_by:
        none = f"{name.removeprefix(sql.LANDED_PREFIX)},0\n" if name.startswith(sql.LANDED_PREFIX) else ""
        (folder / name).mkdir()
        (folder / name / "part-0").write_text(answers.get(name, none))
    return {name: answer.rows(folder / name) for name, answer in answered_by.items()}


def test_the_sound_records_and_their_duplicates_are_right(sent: Path, tmp_path: Path) -> None:
    check("Flink", sent, answered(tmp_path, RIGHT))


def test_what_could_be_parsed_of_a_refused_record_may_count(sent: Path, tmp_path: Path) -> None:
    check("Flink", sent, answered(tmp_path, {**RIGHT, "orders_by_colour": "red,2,50.0\ngreen,1,50.0\n"}))


@pytest.mark.parametrize(
    ("table", "answer", "said"),
    [
        ("landed_order_placed", "order_placed,1\n", "1 keys with less"),
        ("orders_by_day", "", "1 keys with less"),
        ("orders_by_day", "3,2026-01-02,2,201\n", "1 keys with other sums"),
        ("orders_by_hour", '3,"2026-01-02 03",2,200,2\n', "1 keys with other sums"),
        ("orders_by_colour", "red,4,50.0\n", "2 more than the sound records, of 1 refused"),
        ("stock_on_hand", "9,2,4,0\n", "1 keys with other sums"),
        ("average_price_sliding", RIGHT["average_price_sliding"].replace("03:04", "03:05"), "1 keys with less"),
        ("event_rates", "order_placed,2026-01-02 03:04:00.000,1\n", "1 keys with less"),
    ],
)
def test_a_wrong_answer_ends_the_benchmark(sent: Path, tmp_path: Path, table: str, answer: str, said: str) -> None:
    with pytest.raises(AssertionError, match=f"Flink: {table} has {said}"):
        check("Flink", sent, answered(tmp_path, {**RIGHT, table: answer}))


CHANGES = {
    "orders_by_day": '"store_id","day","orders","revenue_cents","time","diff"\n'
    '3,"2026-01-02T00:00:00.000000000",1,100,1,1\n3,"2026-01-02T00:00:00.000000000",1,100,2,-1\n'
    '3,"2026-01-02T00:00:00.000000000",2,200,2,1\n',
    "landed_order_placed": '"event_id","time","diff"\na,1,1\nb,1,1\n',
}


@pytest.mark.parametrize(("revenue", "said"), [("200", None), ("201", "1 keys with other sums")])
def test_changes_of_pathway_are_added_up(sent: Path, tmp_path: Path, revenue: str, said: str | None) -> None:
    for name, changes in CHANGES.items():
        (tmp_path / f"{name}.csv").write_text(changes.replace("2,200", f"2,{revenue}"))
    flinks = answered(tmp_path, RIGHT)
    answers = flinks | {name: pathway._rows(tmp_path, name) for name in CHANGES}
    assert answers.keys() == EXPECTED.keys()
    if said is None:
        check("Pathway", sent, answers)
        return
    with pytest.raises(AssertionError, match=f"Pathway: orders_by_day has {said}"):
        check("Pathway", sent, answers)


def test_every_type_that_the_town_sends_is_read_landed_and_checked() -> None:
    assert {name.removeprefix(sql.LANDED_PREFIX) for name in sql.landed()} == set(sql.READ)
    assert sql.answers(fifteen()).keys() == sql.landed().keys() | fifteen().keys() == EXPECTED.keys()
    assert len(six()) == 6
    assert len(fifteen()) == 15


def test_without_a_peer_the_benchmark_says_so_in_one_line_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise SystemExit("setup: no registry\nand more")

    for one in (peer, pathway):
        monkeypatch.setattr(one, "build", fails)
    monkeypatch.setattr(peer.Environment, "built", lambda _: False)
    said: list[str] = []
    assert list(drain.peers(said.append)) == ["limit", "naive", "ours_same", "ours_fifteen", "ours"]
    assert said == ["without Flink: setup: no registry", "without Pathway: setup: no registry"]
