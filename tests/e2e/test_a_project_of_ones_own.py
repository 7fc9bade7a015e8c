"""A stranger's first hour: a project by `tidemark init`, a view and an event type more, proved without an oracle.

The platform is one of its own, because a platform serves one project; it starts without Airflow. By its name the file
is the first of this folder: the shared platform, which takes half a core even when idle, has not started then.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.orchestration.interface import BATCH_STEPS, CHECKS_FAILED
from tests.platform import Platform, await_true, running

pytestmark = [pytest.mark.slow, pytest.mark.platform, pytest.mark.timeout(900)]
SALES = 118
"""Records of the demo that are events, each counted once."""
RETURNED = {"event_type": "sale_returned", "sale_id": "s-1", "occurred_at": "2026-03-04T10:00:00.000Z"}


def view(event_type: str, key: str) -> str:
    return f"""from spark_jobs.definitions.api import Aggregate, Count

view = Aggregate(
    of="{event_type}",
    by={{"{key}": "{key}"}},
    measures={{"events": Count()}},
    owner="shop",
    description="How many {event_type} there are per {key}.",
)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Platform]:
    """The platform of a written project."""
    assert CliRunner().invoke(main, ["init", str(tmp_path / "shop")]).exit_code == 0
    with running(tmp_path / "shop", "speed") as platform:
        yield platform


def add_event_type(project: Path) -> None:
    """Sales that are taken back: a part of the sale's own contract."""
    schema = json.loads((project / "schemas/events/sale_made.v1.json").read_text())
    fields = ("event_id", "event_type", "occurred_at", "sale_id")
    schema["properties"] = {name: schema["properties"][name] for name in fields}
    schema["properties"]["event_type"] = {"const": "sale_returned"}
    schema |= {"title": "sale_returned", "required": ["event_type", "occurred_at", "sale_id"], "examples": [RETURNED]}
    schema["x-tidemark"] = {"topic": "sale_returned", "key": "sale_id", "owner": "shop"}
    (project / "schemas/events/sale_returned.v1.json").write_text(json.dumps(schema))


def events(platform: Platform, name: str) -> int:
    return int(platform.sql(f"SELECT coalesce(sum(events), 0) FROM {name}")[0][0])


def named(platform: Platform) -> set[str]:
    """The serving views that Spark knows."""
    return {row[1] for row in platform.sql("SHOW VIEWS IN serving")}


def held(platform: Platform) -> dict[str, str]:
    """`verify` ends with exit code 0; the views that it has held to their records, each with by what."""
    found = [one for one in json.loads(platform.tidemark("verify", "--json")) if one["invariant"] == "I3"]
    return {one["law"].split()[0]: one["note"].partition(";")[0] for one in found if one["state"] == "holds"}


def tells_failed_tests_from_broken_marts(platform: Platform, dbt: Path) -> None:
    (dbt / "tests").mkdir()
    (dbt / "tests/no_sales.sql").write_text("SELECT * FROM {{ ref('shop_days') }}")
    assert platform.run("dbt", "build").returncode == CHECKS_FAILED, "trying again would not help"
    (dbt / "models/marts/broken.sql").write_text("SELECT nothing_such")
    assert platform.run("dbt", "build").returncode == 1, "something else than a test failed as well"


def test_b13_a_stranger_adds_a_view_and_an_event_type_and_sees_them_everywhere(shop: Platform, tmp_path: Path) -> None:
    project = shop.settings.project
    shop.tidemark("send", "sale_made", "--quiet", "--file", str(project / "demo/sale_made.jsonl"))
    total = "SELECT sum(sales) FROM serving.sales_by_day"
    await_true(lambda: shop.sql(total) == [(SALES,)], 60, "the sales do not count")
    assert held(shop) == dict.fromkeys(("sales_by_day", "shopping_trips"), "by recomputing")

    add_event_type(project)
    (project / "views/sales_by_product.py").write_text(view("sale_made", "product"))
    (project / "views/returns.py").write_text(view("sale_returned", "sale_id"))
    shop.tidemark("topics", "create")
    pid = shop.status()["parts"]["speed"]["pid"]
    psutil.Process(pid).kill()  # not a polite restart: a sample of tests/faults
    shop.await_ready("speed", other_than=pid)
    (tmp_path / "returned").write_text(json.dumps(RETURNED))
    shop.tidemark("send", "sale_returned", "--file", str(tmp_path / "returned"))
    await_true(lambda: {"returns", "sales_by_product"} <= named(shop), 60, "a new view's name waits until it is filled")
    await_true(lambda: events(shop, "serving.returns") == 1, 60, "the return does not count")
    assert events(shop, "serving.sales_by_product") == SALES, "speed computes it from the whole log"

    for step in BATCH_STEPS:
        shop.tidemark("batch", step, "--run-id", "first")
    assert "no models" in shop.tidemark("model", "train", "--run-id", "first")
    for name in ("sales_by_product", "returns"):
        assert events(shop, f"batch.{name}") == events(shop, f"serving.{name}") > 0
        assert name in shop.tidemark("views")
    every = ("sales_by_day", "shopping_trips", "sales_by_product", "returns")
    assert held(shop) == dict.fromkeys(every, "by recomputing")

    assert shop.run("dbt", "sources", "--check").returncode == 1, "dbt's sources ask to be written anew"
    shop.tidemark("dbt", "sources")
    shop.tidemark("dbt", "docs")
    page = shop.settings.home / "dbt/docs/index.html"
    assert "sales_by_product" in page.read_text(), "dbt's sources and documentation name it"
    tells_failed_tests_from_broken_marts(shop, project / "dbt")
