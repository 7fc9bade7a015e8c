"""Suites say of stored rows what schemas and views say, and people can add to them, but not by a broken file."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.quality.expectations import suites
from spark_jobs.quality.expectations.suites import Suite, SuiteError
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def told(suite: Suite) -> set[tuple[str, str, str]]:
    """(column, expectation, severity) of each."""
    found = set()
    for one in suite.expectations:
        config = one.configuration
        column = config.kwargs.get("column") or "+".join(config.kwargs.get("column_list", ()))
        found.add((column, config.type.removeprefix("expect_"), config.severity.value))
    return found


def limits(suite: Suite, column: str, kind: str) -> list[dict[str, Any]]:
    """The arguments of the column's expectations of one type."""
    configs = [one.configuration for one in suite.expectations]
    return [c.kwargs for c in configs if c.kwargs.get("column") == column and c.type == f"expect_{kind}"]


def facts(event_type: str) -> Suite:
    return suites.of_facts(project_contracts().of(event_type), 7, NOW)


def aggregate(view_id: str, *, must_have_rows: bool = True) -> Suite:
    view = project_views()[view_id]
    assert isinstance(view, AggregateView)
    return suites.of_aggregate(view, must_have_rows=must_have_rows)


def test_a_field_is_held_to_what_its_schema_says(platform_home: Path) -> None:
    order = facts("order_placed")
    assert {
        ("quantity", "column_values_to_not_be_null", "critical"),
        ("identity", "column_values_to_be_unique", "critical"),
        ("colour", "column_values_to_be_in_set", "critical"),
        ("occurred_at", "column_values_to_be_between", "warning"),
    } <= told(order)
    assert limits(order, "colour", "column_values_to_be_in_set")[0]["value_set"] == ["red", "yellow", "blue"]
    assert (1, 10000) in [(one.get("min_value"), one.get("max_value")) for one in
                          limits(order, "quantity", "column_values_to_be_between")]  # fmt: skip
    assert limits(order, "lsn", "column_values_to_be_between")[0]["max_value"] == 7
    late = limits(order, "occurred_at", "column_values_to_be_between")[0]["max_value"]
    assert datetime.fromisoformat(str(late)) == NOW + timedelta(days=1)


def test_every_event_type_and_view_has_a_suite_that_names_only_its_columns(platform_home: Path) -> None:
    for contract in project_contracts():
        suite = facts(contract.event_type)
        there = set(suite.columns)
        assert {one for column, *_ in told(suite) for one in column.split("+")} <= there | {""}
        assert {field.name for field in contract.fields if field.required} <= {column for column, *_ in told(suite)}
    for view in project_views():
        assert all(len(suite.expectations) >= 3 for suite in suites.of_view(view, must_have_rows=True))


def test_a_tombstone_need_not_have_the_other_fields(platform_home: Path) -> None:
    airline = facts("airline_changed")
    carrier = limits(airline, "carrier", "column_values_to_not_be_null")[0]
    name = limits(airline, "name", "column_values_to_not_be_null")[0]
    assert carrier.get("row_condition") is None
    assert name["row_condition"] is not None


def test_keys_are_unique_counts_not_negative_and_rows_wanted_where_there_are_facts(platform_home: Path) -> None:
    found = told(aggregate("orders_by_hour"))
    assert ("store_id+hour", "compound_columns_to_be_unique", "critical") in found
    assert ("orders", "column_values_to_be_between", "critical") in found
    assert ("store_id", "column_values_to_not_be_null", "critical") in found
    rows = ("", "table_row_count_to_be_between", "critical")
    assert rows in found
    assert rows not in told(aggregate("orders_by_hour", must_have_rows=False))
    assert ("colour+colour", "compound_columns_to_be_unique", "critical") in told(aggregate("orders_by_colour"))


@pytest.mark.parametrize(
    ("text", "is_sure"),
    [
        ("store_id", True),
        ("date_trunc('HOUR', occurred_at)", True),
        ("nullif(store_id, 3)", False),
        ("CASE WHEN store_id > 3 THEN 1 END", False),
        ("optional", False),
    ],
)
def test_a_key_is_expected_to_be_there_only_where_it_cannot_be_null(text: str, is_sure: bool) -> None:
    from spark_jobs.expressions.expression import parse

    columns = {"store_id": "BIGINT", "occurred_at": "TIMESTAMP", "optional": "STRING"}
    key = parse(text, columns, "test")  # type: ignore[arg-type]
    assert suites.never_null(key, {"store_id", "occurred_at"}) is is_sure


def write(folder: Path, content: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "batch.orders_by_day.json").write_text(content if isinstance(content, str) else json.dumps(content))


def test_own_expectations_are_added_and_the_installations_file_stands_in_for_the_projects(
    platform_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_QUALITY_FOLDER", str(tmp_path / "project"))
    settings.cache_clear()
    one = {
        "type": "expect_column_max_to_be_between",
        "kwargs": {"column": "orders", "max_value": 5},
        "severity": "warning",
    }
    write(tmp_path / "project", [one])
    assert ("orders", "column_max_to_be_between", "warning") in told(aggregate("orders_by_day"))
    write(platform_home / "expectations", [])
    assert ("orders", "column_max_to_be_between", "warning") not in told(aggregate("orders_by_day"))


@pytest.mark.parametrize(
    "content",
    [
        "{",
        [{"type": "expect_nothing_of_the_kind", "kwargs": {}}],
        [{"type": "expect_column_max_to_be_between", "kwargs": {"column": "orders"}, "severity": "fatal"}],
        [{"type": "expect_column_max_to_be_between", "kwargs": {"column": "orders"}, "level": "warning"}],
        [{"kwargs": {"column": "orders"}}],
    ],
)
def test_a_file_of_expectations_that_cannot_be_used_is_refused_by_name(platform_home: Path, content: Any) -> None:
    write(platform_home / "expectations", content)
    with pytest.raises(SuiteError, match=r"expectations/batch\.orders_by_day\.json"):
        aggregate("orders_by_day")
