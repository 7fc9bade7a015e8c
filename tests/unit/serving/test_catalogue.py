"""What people read of the views follows from their definitions, and from what is covered."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.registry.views import Views, project_views
from spark_jobs.serving import catalogue
from spark_jobs.settings import ROOT, settings
from tests.local_platform import START, Platform, event

VIEWS = project_views()


def test_the_committed_readme_has_the_table_of_these_views() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert catalogue.readme(VIEWS, text) == text, "run `tidemark view table`"


def test_a_readme_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the views"):
        catalogue.readme(VIEWS, "# A project\n")


@pytest.mark.parametrize(
    ("view", "kind", "grain"),
    [
        ("orders_by_day", "aggregate", "store_id, day"),
        ("average_price_sliding", "hopping aggregate", "colour, window_start, window_end"),
        ("orders_last_8_minutes", "trailing aggregate", "store_id"),
        ("top_sellers", "top aggregate", "day, product_id"),
        ("sessions", "sequence", "user_id"),
        ("calories_burned", "row by row", "person_id"),
    ],
)
def test_kind_and_grain_follow_from_the_definition(view: str, kind: str, grain: str) -> None:
    assert (catalogue.kind(VIEWS[view]), catalogue.grain(VIEWS[view])) == (kind, grain)


def test_the_list_says_from_where_a_view_is_served_and_what_is_missing(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = Platform(["orders_by_day", "orders_by_colour", "word_count"])
    platform.land([event("order_placed", START)])
    store = ledger.open()
    sources = {view_id: source for view_id, source in platform.build().items() if view_id == "orders_by_day"}
    store.finish_publication(store.begin_publication("batch", sources, cut=1).id)
    for name in ("orders_by_day", "word_count"):
        store.record_serving_sql(name, f"SELECT '{name}_v1'")
    began = datetime.now(UTC).replace(microsecond=0)
    platform.land([event("order_placed", START)])
    platform.views = Views((*platform.views.all, VIEWS["top_sellers"]))  # the speed layer does not know it yet
    monkeypatch.setattr("spark_jobs.cli.view.project_views", lambda: platform.views)
    told = CliRunner().invoke(main, ["views", "--format", "json"])
    rows = {row["view"]: row for row in json.loads(told.stdout)}
    assert {name: row["covered"] for name, row in rows.items()} == {
        "orders_by_day": "2-2",
        "orders_by_colour": "1-2: not served",
        "word_count": "1-2",
        "top_sellers": "nothing past the cut, lacks 1: filling, not served yet",
    }
    assert rows["orders_by_day"]["cut"] == 1
    assert began <= datetime.fromisoformat(rows["orders_by_day"]["fresh_to"]) <= datetime.now(UTC)
    assert rows["top_sellers"]["fresh_to"] is None


@pytest.mark.parametrize("view", ["top_sellers", "trades", "user_card"])
def test_a_view_is_shown_with_its_definition_and_the_sql_of_each_step(platform_home: Path, view: str) -> None:
    told = CliRunner().invoke(main, ["view", "show", view, "--rows", "0"])
    assert told.exit_code == 0, told.output
    assert (settings().views_folder / f"{view}.py").read_text("utf-8").rstrip() in told.output
    assert "speed.partials" in told.output and "facts." in told.output


def test_an_unknown_view_is_refused_with_what_is_near(platform_home: Path) -> None:
    told = CliRunner().invoke(main, ["view", "show", "top_seller"])
    assert told.exit_code == 1 and "there is no view top_seller; near: top_sellers" in told.stderr
