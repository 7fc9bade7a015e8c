"""Two versions of a view: what the other one changes for readers, and which of them is explained."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.clauses import ViewError
from spark_jobs.definitions.measures.exact import Sum
from spark_jobs.definitions.spec import Aggregate
from spark_jobs.engine import chained_view
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.source import UNBUILT
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving.explain import explain
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready, serving_sql
from tests.local_platform import START, Platform, event


@pytest.fixture
def platform(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> Platform:
    """orders_by_colour, and a second version of it that calls six pieces large, where the first says five."""
    made = Platform(["orders_by_colour", "word_count"])
    view = project_views()["orders_by_colour"]
    assert isinstance(view, AggregateView)
    measures = tuple(
        replace(one, condition=replace(one.condition, spark="`quantity` >= 6L", duckdb='"quantity" >= 6'))
        if one.name == "large_orders" and one.condition
        else one
        for one in view.measures
    )
    made.views = Views((view, replace(view, version=2, measures=measures), made.views["word_count"]))
    monkeypatch.setattr("spark_jobs.cli.view.project_views", lambda: made.views)
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


def test_a_name_explains_the_version_that_is_served_and_an_id_its_own(platform: Platform) -> None:
    platform.land([order("red", 5), order("red", 6)])
    with closing(ledger.open()) as store:

        def large(name: str) -> tuple[str, int]:
            found = explain(store, platform.views, name, ["colour=red"])
            return found.view, found.answer[0]["large_orders"]

        assert large("orders_by_colour") == ("orders_by_colour", 2)
        assert large("orders_by_colour_v2") == ("orders_by_colour_v2", 1)
        store.promote("orders_by_colour", 2)
        assert large("orders_by_colour") == ("orders_by_colour_v2", 1)


def test_a_view_over_another_follows_the_version_that_is_served(platform: Platform) -> None:
    platform.land([order("red", 5), order("red", 6), order("blue", 9)])
    declared = Aggregate(of_view="orders_by_colour", by={"all": "1"}, measures={"large": Sum("large_orders")},
                         owner="tests", description="all large orders")  # fmt: skip
    view = chained_view.bind_chained("large", declared, platform.views["orders_by_colour_v2"])
    views = Views(platform.views.all, (view,))
    for version, large in {1: 3, 2: 2}.items():
        sources = ready(views, dict.fromkeys((one.id for one in views), UNBUILT), {"orders_by_colour": version})
        merged = LocalAnswers(views, sources, platform.lsn)
        assert merged.con.sql(merged.answer(view)).fetchall() == [(1, large)]
        assert f"view = 'orders_by_colour_v{version}'" in serving_sql(view, sources, views)


def test_a_view_over_another_works_over_all_its_versions_or_is_refused(platform: Platform) -> None:
    declared = Aggregate(of_view="orders_by_colour", by={"all": "1"}, measures={"large": Sum("large_orders")},
                         owner="tests", description="all large orders")  # fmt: skip
    first = platform.views["orders_by_colour"]
    assert isinstance(first, AggregateView)
    view = chained_view.bind_chained("large", declared, platform.views["orders_by_colour_v2"])
    chained_view.check_base(view, first)
    poorer = replace(first, measures=tuple(one for one in first.measures if one.name != "large_orders"))
    with pytest.raises(ViewError, match="orders_by_colour does not serve large_orders"):
        chained_view.check_base(view, poorer)


def test_what_was_never_promoted_is_not_rolled_back(platform: Platform) -> None:
    found = CliRunner().invoke(main, ["view", "rollback", "orders_by_colour"])
    assert (found.exit_code, found.output) == (1, "tidemark: orders_by_colour was never promoted\n")


def test_one_version_has_nothing_to_be_compared_with(platform: Platform) -> None:
    platform.land([order("red", 4)])
    assert told("word_count") == (
        1, ["tidemark: word_count: only version 1; a second version is a file word_count_v2.py with version=2"]
    )  # fmt: skip
    assert told("nothing")[1][0].startswith("tidemark: nothing: no such view")
