"""`tidemark view diff`: what another version of a view changes for readers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs import registry
from spark_jobs.cli import main
from spark_jobs.registry import Views
from spark_jobs.view import AggregateView
from tests.unit.small_platform import START, Platform, event


@pytest.fixture
def platform(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """orders_by_colour, and a second version of it that calls six pieces large, where the first says five."""
    made = Platform(["orders_by_colour", "word_count"])
    view = registry.views()["orders_by_colour"]
    assert isinstance(view, AggregateView)
    measures = tuple(
        replace(one, condition=replace(one.condition, spark="`quantity` >= 6L", duckdb='"quantity" >= 6'))
        if one.name == "large_orders" and one.condition
        else one
        for one in view.measures
    )
    made.views = Views((view, replace(view, version=2, measures=measures), made.views["word_count"]))
    monkeypatch.setattr("spark_jobs.registry.views", lambda: made.views)
    return made


def told(*arguments: str) -> tuple[int, list[str]]:
    found = CliRunner().invoke(main, ["view", "diff", *arguments])
    return found.exit_code, found.output.splitlines()


def order(colour: str, quantity: int) -> dict[str, Any]:
    return event("order_placed", START, colour=colour, quantity=quantity)


def test_rows_that_the_new_version_changes_are_shown(platform: Platform) -> None:
    platform.land([order("red", 5), order("red", 6), order("blue", 7)])
    code, lines = told("orders_by_colour")
    assert code == 1
    assert lines[0].startswith("orders_by_colour against orders_by_colour_v2, up to lsn 1: columns colour, orders")
    assert lines[1:] == ["colour=red: large_orders 2 (version 1) 1 (version 2)", "1 of 2 rows differ"]


def test_versions_that_agree_end_well(platform: Platform) -> None:
    platform.land([order("red", 4), order("blue", 7)])
    assert told("orders_by_colour") == (0, [*told("orders_by_colour")[1][:1], "0 of 2 rows differ"])


def test_one_version_has_nothing_to_be_compared_with(platform: Platform) -> None:
    platform.land([order("red", 4)])
    assert told("word_count") == (
        1, ["tidemark: word_count: only version 1; a second version is a file word_count_v2.py with version=2"]
    )  # fmt: skip
    assert told("nothing")[1][0].startswith("tidemark: nothing: no such view")
