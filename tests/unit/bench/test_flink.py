"""A run of Flink in DRAIN counts only with right answers."""

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.sample.producer_ledger import PRODUCER_LEDGER
from tests.bench import drain
from tests.bench.flink import peer, sql
from tests.bench.flink.checked import check

ORDER = {"store_id": 3, "user_id": 7, "quantity": 2, "unit_price_cents": 50, "colour": "red"}
SOUND = {**ORDER, "occurred_at": "2026-01-02T03:04:05.678Z"}
RIGHT = {
    "orders_by_day": "3,2026-01-02,2,200\n",
    "orders_by_hour": '3,"2026-01-02 03",2,200,1\n',
    "orders_by_colour": "red,2,50.0\n",
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


def answered(folder: Path, answers: Mapping[str, str]) -> Path:
    """Flink's files: `answers`, and nothing for the other tables."""
    for name in sql.answers():
        none = f"{name.removeprefix(sql.LANDED_PREFIX)},0\n" if name.startswith(sql.LANDED_PREFIX) else ""
        (folder / name).mkdir()
        (folder / name / "part-0").write_text(answers.get(name, none))
    return folder


def test_the_sound_records_and_their_duplicates_are_right(sent: Path, tmp_path: Path) -> None:
    check(sent, answered(tmp_path, RIGHT))


def test_what_could_be_parsed_of_a_refused_record_may_count(sent: Path, tmp_path: Path) -> None:
    check(sent, answered(tmp_path, {**RIGHT, "orders_by_colour": "red,2,50.0\ngreen,1,50.0\n"}))


@pytest.mark.parametrize(
    ("table", "answer", "said"),
    [
        ("landed_order_placed", "order_placed,1\n", "1 keys with less"),
        ("orders_by_day", "", "1 keys with less"),
        ("orders_by_day", "3,2026-01-02,2,201\n", "1 keys with other sums"),
        ("orders_by_hour", '3,"2026-01-02 03",2,200,2\n', "1 keys with other sums"),
        ("orders_by_colour", "red,4,50.0\n", "2 more than the sound records, of 1 refused"),
    ],
)
def test_a_wrong_answer_ends_the_benchmark(sent: Path, tmp_path: Path, table: str, answer: str, said: str) -> None:
    with pytest.raises(AssertionError, match=f"{table} has {said}"):
        check(sent, answered(tmp_path, {**RIGHT, table: answer}))


def test_every_type_that_the_town_sends_is_read_landed_and_checked() -> None:
    assert {name.removeprefix(sql.LANDED_PREFIX) for name in sql.landed()} == set(sql.READ)
    assert sql.answers().keys() == sql.landed().keys() | sql.views().keys()


def test_without_flink_the_benchmark_says_so_in_one_line_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise SystemExit("setup: no registry\nand more")

    monkeypatch.setattr(peer, "build", fails)
    monkeypatch.setattr(peer.Environment, "built", lambda _: False)
    said: list[str] = []
    assert list(drain.peers(said.append)) == ["limit", "naive", "ours_same", "ours"]
    assert said == ["without Flink: setup: no registry"]
