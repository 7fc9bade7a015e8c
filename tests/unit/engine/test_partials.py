"""The pass: rejects, failures of one view, several lsns at once, and an empty micro-batch."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.row_types import FACT
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.engine import partials
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.partials import compute
from spark_jobs.engine.sequences import side_input_key
from spark_jobs.registry.views import project_views
from tests.local_platform import Platform, event, market
from tests.unit.registry.test_views import SHAPES, aggregate, load, sequence

LARGE = 2**62


def paid(*rows: tuple[int, str | None, int | None], first_offset: int = 0) -> dict[str, pa.Table]:
    """Facts of `paid`: (lsn, card, cents)."""
    fields = [("card", pa.string()), ("cents", pa.int64()), ("rate", pa.float64())]
    made = [
        {"lsn": lsn, "topic": "paid", "partition": 0, "offset": offset, "event_type": "paid", "occurred_at": offset}
        | {"card": card, "cents": cents, "deleted": False}
        for offset, (lsn, card, cents) in enumerate(rows, first_offset)
    ]
    return {"paid": pa.Table.from_pylist(made, pa.schema([*FACT, *fields]))}


def decoded(events: list[dict[str, Any]]) -> dict[str, pa.Table]:
    """Facts of events as they would land in one micro-batch."""
    platform = Platform([])
    platform.lsn = 1
    records = pa.Table.from_pylist([platform.record(one) for one in events], row_types.RECORD)
    return dict(decode_logged(records, EVERY_SCHEMA).facts)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


def test_records_of_several_lsns_are_grouped_by_lsn(tmp_path: Path) -> None:
    views = load(tmp_path, payments=aggregate(measures='{"payments": Count(), "cents": Sum("cents")}'))
    found = compute(paid((3, "a", 1), (3, "a", 2), (4, "a", 5), (4, "b", None)), views.all)
    made = found.partials["payments_v1"]
    assert made.schema == pa.schema([("lsn", pa.int64()), *views["payments"].partial_schema])
    assert rows(made) == [(3, "a", 2, 3), (4, "a", 1, 5), (4, "b", 1, None)]


def test_a_fact_that_fails_is_a_reject_of_that_view_and_counts_in_the_others(tmp_path: Path) -> None:
    views = load(
        tmp_path,
        doubled=aggregate(measures='{"n": Count(), "x": Sum("cents * 4")}'),
        plain=aggregate(),
        filtered=aggregate(measures='{"n": Count(), "x": Sum("cents * 4", where="cents < 10")}'),
        keyed=aggregate(by='{"k": "cents * 4"}'),
        only=aggregate(where='"cents * 4 > 0"'),
    )
    found = compute(paid((1, "a", 1), (1, "a", LARGE)), views.all)
    assert rows(found.partials["doubled_v1"]) == [(1, "a", 1, 4)]
    assert rows(found.partials["plain_v1"]) == [(1, "a", 2)]
    assert rows(found.partials["filtered_v1"]) == [(1, "a", 2, 4)]
    assert rows(found.partials["keyed_v1"]) == [(1, 4, 1)]
    assert [(r["view"], r["offset"], r["field"], r["reason"]) for r in found.rejects.to_pylist()] == [
        ("doubled_v1", 1, "measure x", "expression_failed"),
        ("keyed_v1", 1, "key k", "expression_failed"),
        ("only_v1", 1, "where", "expression_failed"),
    ]
    assert found.rejects.schema == partials.REJECTS


def test_a_value_beyond_what_variance_can_sum_exactly_is_a_reject(tmp_path: Path) -> None:
    views = load(tmp_path, spread=aggregate(measures='{"v": Variance("cents")}'))
    found = compute(paid((1, "a", 10**12), (1, "a", 10**12 + 1), (1, "a", -(2**63))), views.all)
    assert rows(found.partials["spread_v1"]) == [(1, "a", 1, 10**12, 10**24)]
    assert found.rejects["field"].to_pylist() == ["measure v"] * 2


def test_e_a_value_by_what_fails_is_a_reject_and_by_nothing_is_left_out(tmp_path: Path) -> None:
    views = load(tmp_path, dear=aggregate(by='{"one": "1"}', measures='{"x": MaxBy("card", by="cents * 4")}'))
    found = compute(paid((1, "a", 1), (1, "b", LARGE), (1, "z", None), (2, "c", None)), views.all)
    assert rows(found.partials["dear_v1"]) == [(1, 1, "a", 4), (2, 1, None, None)]
    assert [(reject["offset"], reject["field"]) for reject in found.rejects.to_pylist()] == [(1, "measure x")]


def test_a_row_of_a_sequence_needs_its_key(tmp_path: Path) -> None:
    views = load(tmp_path, steps=sequence())
    found = compute(paid((1, None, 1), (1, "a", 2)), views.all)
    assert rows(found.partials["steps_v1"]) == [(1, "a", 1, "pay", "paid/10000000000/1000000000000000001", 2)]
    assert found.rejects["field"].to_pylist() == ["pay key"]


def test_ties_sort_like_their_positions(tmp_path: Path) -> None:
    views = load(tmp_path, steps=sequence())
    ties = []
    for offset in (0, 9, 10, 99, 10**12, 2**62):
        facts = paid((1, "a", 1), first_offset=offset)
        ties += compute(facts, views.all).partials["steps_v1"]["tie"].to_pylist()
    assert ties == sorted(ties)


def test_a_view_whose_pass_fails_is_set_aside_and_the_others_go_on(tmp_path: Path) -> None:
    views = load(tmp_path, good=aggregate(), wrong=aggregate(measures='{"n": Count("cents")}'))
    wrong = views["wrong"]
    assert isinstance(wrong, AggregateView)
    bad = replace(wrong.measures[0].value, duckdb="error('no')")
    broken = replace(wrong, measures=(replace(wrong.measures[0], value=bad),))
    found = compute(paid((1, "a", 1)), [broken, views["good"]])
    assert set(found.failed) == {"wrong_v1"} and "no" in found.failed["wrong_v1"]
    assert rows(found.partials["good_v1"]) == [(1, "a", 1)]
    assert set(found.partials) == {"good_v1"}


def test_an_internal_error_of_duckdb_does_not_outlive_the_pass(tmp_path: Path) -> None:
    views = load(tmp_path, good=aggregate())
    compute(paid((1, "a", 1)), views.all)
    partials._plans()._connection.close()
    assert rows(compute(paid((1, "a", 1)), views.all).partials["good_v1"]) == [(1, "a", 1)]


def test_plans_that_are_kept_give_what_fresh_ones_give_whatever_types_come(monkeypatch: pytest.MonkeyPatch) -> None:
    views, contracts = project_views(), project_contracts()
    no_ones = {side_input_key(c.event_type): c.fact_schema.empty_table() for c in contracts}
    every = [event(c.event_type) for c in contracts if c.key in c.examples[0]]
    for batch in (every, every[:3], market(1), every[3:9], [], market(2), every[9:], every[:1]):
        facts = no_ones | decoded(batch)
        kept = compute(facts, views.all)
        with monkeypatch.context() as fresh:
            fresh.setattr(partials, "MANY_ROWS", -1)
            expected = compute(facts, views.all)
        assert (kept.failed, kept.rejects.num_rows) == (expected.failed, expected.rejects.num_rows) == ({}, 0)
        assert {c: rows(t) for c, t in kept.partials.items()} == {c: rows(t) for c, t in expected.partials.items()}


def test_a_side_input_that_nobody_gives_is_named() -> None:
    scored = project_views()["payments_scored"]
    facts = decoded([event(name) for name in scored.row_types])
    no_ones = {side_input_key(n): project_contracts().of(n).fact_schema.empty_table() for n in scored.side_inputs}
    assert not compute(facts | no_ones, [scored]).failed
    assert "is not among the facts" in compute(facts, [scored]).failed[scored.column], "a kept plan knows its name"


def test_views_without_facts_have_empty_partials() -> None:
    views = project_views()
    found = compute({}, views.all)
    assert set(found.partials) == {view.column for view in views}
    assert all(table.num_rows == 0 for table in found.partials.values())


@pytest.mark.parametrize("field", ["card", "cents"])
def test_words_that_sql_reserves_can_be_columns(tmp_path: Path, field: str) -> None:
    views = load(
        tmp_path, payments=aggregate(by=f'{{"order": "{field}", "end": "{field}"}}', measures='{"group": Count()}')
    )
    assert compute(paid((1, "a", 1)), views.all).partials["payments_v1"].column_names == [
        "lsn",
        "order",
        "end",
        "group",
    ]
    assert SHAPES["paid"].fields[field]
