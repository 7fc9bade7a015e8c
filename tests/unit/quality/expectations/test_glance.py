"""A look in memory passes good rows and finds each kind of bad one; what it passes, Spark does not look at."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import AggregateView, SequenceView
from spark_jobs.quality.expectations import relation, suites
from spark_jobs.quality.expectations.checkpoint import Checkpoint
from spark_jobs.quality.expectations.relation import Stored, as_frame
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.quality.expectations.verdicts import key, sentence
from spark_jobs.registry.views import project_views
from spark_jobs.storage import tables

NOW = datetime(2026, 3, 1, tzinfo=UTC)
Rows = list[dict[str, Any]]


def failures(suite: Suite, *frames: Rows) -> list[str]:
    def frame(rows: Rows) -> Any:
        return as_frame(pa.Table.from_pylist([{name: row.get(name) for name in suite.columns} for row in rows]))

    broken = Checkpoint("r1").glance(suite, map(frame, frames)).broken
    return [sentence(one.configuration) for one in suite.expectations if key(one.configuration) in broken]


def orders() -> Suite:
    return suites.of_facts(project_contracts().of("order_placed"), 7, NOW)


def order(number: int) -> dict[str, Any]:
    example = project_contracts().of("order_placed").examples[0]
    envelope = {"lsn": 1, "topic": "order_placed", "partition": 0, "offset": number, "timestamp": NOW, "deleted": False}
    return {**example, **envelope, "event_type": "order_placed", "occurred_at": NOW, "schema_version": 1} | {
        "identity": f"{number:032X}"
    }


BAD_FACTS: dict[str, dict[str, Any]] = {
    "quantity: values to not be null": {"quantity": None},
    "quantity: values to be between": {"quantity": 0},
    "colour: values to be in set": {"colour": "mauve"},
    "order_id: value lengths to be between": {"order_id": "o" * 65},
    "identity: values to be unique": {"identity": f"{1:032X}"},
    "lsn: values to be between": {"lsn": 8},
    "topic: values to be in set": {"topic": "page_viewed"},
    "occurred_at: values to be between": {"occurred_at": NOW + timedelta(days=2)},
}


@pytest.mark.parametrize("said", BAD_FACTS)
def test_a_bad_fact_is_found(said: str, platform_home: Path) -> None:
    assert not failures(orders(), [order(1), order(2)])
    found = failures(orders(), [order(1), order(2) | BAD_FACTS[said]])
    assert any(one.startswith(said) for one in found), found


def test_a_bad_fact_of_any_frame_is_found(platform_home: Path) -> None:
    bad, other = order(3) | {"quantity": 0}, order(4) | {"colour": "mauve"}
    found = failures(orders(), [order(1), bad], [order(2), other], [order(5)])
    assert sorted(one.split(" (")[0] for one in found) == [
        "colour: values to be in set",
        "quantity: values to be between",
    ]


def aggregate_rows() -> tuple[Suite, Rows]:
    view = project_views()["orders_by_day"]
    assert isinstance(view, AggregateView)
    suite = suites.of_aggregate(view, must_have_rows=True)
    return suite, [dict.fromkeys(suite.columns, 1) | {"store_id": store} for store in (1, 2**53, 2**53 + 1)]


def sequence_rows() -> tuple[Suite, Rows]:
    view = project_views()["sessions"]
    assert isinstance(view, SequenceView)
    kind = view.rows[0].kind
    rows = [{"key": 7, "ts": at, "kind": kind, "tie": f"{at}", "stretch_end": 5} for at in (1, 2)]
    return suites.of_rows(view), rows


BAD_ROWS: dict[str, tuple[Callable[[], tuple[Suite, Rows]], Callable[[Rows], Rows]]] = {
    "compound columns to be unique": (aggregate_rows, lambda rows: [*rows, rows[0]]),
    "orders: values to be between": (aggregate_rows, lambda rows: [*rows[1:], rows[0] | {"orders": -1}]),
    "store_id: values to not be null": (aggregate_rows, lambda rows: [*rows[1:], rows[0] | {"store_id": None}]),
    "table row count to be between": (aggregate_rows, lambda _: []),
    "kind: values to be in set": (sequence_rows, lambda rows: [*rows[1:], rows[0] | {"kind": "other"}]),
    "pair values a to be greater than b": (sequence_rows, lambda rows: [*rows[1:], rows[0] | {"ts": 6}]),
}


@pytest.mark.parametrize("said", BAD_ROWS)
def test_a_bad_row_of_a_batch_table_is_found(said: str, platform_home: Path) -> None:
    good, spoil = BAD_ROWS[said]
    suite, rows = good()
    assert not failures(suite, rows), "keys past 2**53 are told apart"
    found = failures(suite, spoil(rows))
    assert any(one.startswith(said) for one in found), found


def test_only_the_audited_rows_must_fit_in_memory(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tables.path("facts.a"), pa.table({"lsn": range(10), "identity": [b"\x0a"] * 10}))
    monkeypatch.setattr(relation, "AT_ONCE", 4)
    suite = Suite("facts.a", ("lsn", "identity"), ())
    assert Stored("facts.a").frames(suite) is None
    frames = Stored("facts.a", where="lsn > 6").frames(suite)
    assert frames is not None
    assert [new.to_dict("list") for new in frames] == [{"lsn": [7, 8, 9], "identity": ["0A"] * 3}]
