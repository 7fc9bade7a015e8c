"""Two walks in a real browser: a view was wrong, and a schema came late. Readers see the old or the new answer.

`make test-browser`; with PICTURES=docs/runbooks/pictures each step's picture is kept for the runbooks.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.orchestration.interface import BATCH_STEPS
from tests.browser.walker import walking
from tests.platform import Platform, await_true, running

pytestmark = [pytest.mark.browser, pytest.mark.platform, pytest.mark.timeout(3000)]

DAY, PRODUCT, TILL = "2026-03-02", "milk", 7
"""What the walks look at; customer 7 is the shop's own till, which a view should not have counted."""
EVERY = 0.5
"""Seconds between two questions of a reader."""


def revenue(records: list[dict[str, Any]], *without: int) -> int:
    """What the shop took for the product on the day, by the records themselves; without some customers."""
    sales = {record["sale_id"]: record for record in records}.values()
    return sum(
        sale["quantity"] * sale["unit_price_cents"]
        for sale in sales
        if sale["product"] == PRODUCT and sale["occurred_at"].startswith(DAY) and sale["customer_id"] not in without
    )


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """The platform of a written project, fed and built once."""
    project = tmp_path_factory.mktemp("walks") / "shop"
    assert CliRunner().invoke(main, ["init", str(project)]).exit_code == 0
    with running(project) as platform:
        platform.tidemark("send", "sale_made", "--quiet", "--file", str(project / "demo/sale_made.jsonl"))
        await_true(lambda: served(platform) is not None, 120, "the sales do not count")
        built(platform, "first")
        yield platform


def built(platform: Platform, run_id: str) -> None:
    """As every night."""
    for step in BATCH_STEPS:
        platform.tidemark("batch", step, "--run-id", run_id)


def records(platform: Platform) -> list[dict[str, Any]]:
    lines = (platform.settings.project / "demo/sale_made.jsonl").read_text().splitlines()
    return [record for line in lines if isinstance(record := _read(line), dict) and "sale_id" in record]


def _read(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def served(platform: Platform) -> int | None:
    """The revenue that a reader of the Thrift server sees."""
    query = f"SELECT revenue_cents FROM serving.sales_by_day WHERE product = '{PRODUCT}' AND day = DATE '{DAY}'"
    rows = platform.sql(query)
    return None if not rows else int(rows[0][0])


@contextmanager
def reader(platform: Platform) -> Iterator[dict[int | None, int]]:
    """Somebody who asks twice a second meanwhile: answer -> how often it was seen."""
    seen, stop = defaultdict[int | None, int](int), threading.Event()

    def asks() -> None:
        while not stop.wait(EVERY):
            seen[served(platform)] += 1

    asking = threading.Thread(target=asks)
    asking.start()
    try:
        yield seen
    finally:
        stop.set()
        asking.join()


def restart_speed(platform: Platform) -> None:
    """As after a new definition: the speed application reads it, and catches up."""
    pid = platform.status()["parts"]["speed"]["pid"]
    platform.tidemark("restart", "speed")
    platform.await_ready("speed", other_than=pid)


def test_a_view_was_wrong_is_written_anew_replayed_agreed_to_promoted_and_rolled_back(
    shop: Platform, tmp_path: Path
) -> None:
    wrong, right = revenue(records(shop)), revenue(records(shop), TILL)
    assert wrong != right
    with walking(shop, "view", tmp_path) as walker, reader(shop) as seen:
        asked = {"view": "sales_by_day", "product": PRODUCT, "day": DAY}
        assert walker.looks_up("wrong", **asked)[0]["revenue_cents"] == wrong
        text = (shop.settings.project / "views/sales_by_day.py").read_text()
        mended = text.replace("    owner=", f'    where="customer_id <> {TILL}",\n    version=2,\n    owner=')
        (shop.settings.project / "views/sales_by_day_v2.py").write_text(mended)
        restart_speed(shop)

        why, form = "the till is no customer", {"From": "facts", "Views": "sales_by_day"}
        walker.sees_the_preview(walker.triggers_replay(why, "promote", step="form", **form))
        run = walker.triggers_replay(why, "promote", "dry_run", **form)
        walker.waits_for(run, "agree", "awaiting_input")
        assert "5 version 2" in walker.compares(run)
        assert served(shop) == wrong, "nobody sees it before somebody agrees"
        assert "sales_by_day: 5 rows differ" in walker.approves(run)
        assert walker.looks_up("promoted", **asked)[0]["revenue_cents"] == right

        shop.tidemark("view", "rollback", "sales_by_day")
        await_true(lambda: served(shop) == wrong, 60, "the rollback is not served")
        assert walker.looks_up("rolled-back", **asked)[0]["revenue_cents"] == wrong
    assert set(seen) == {wrong, right} and sum(seen.values()) > 20, "a reader saw the old answer, or the new one"
    assert shop.tidemark("verify")


def test_a_schema_came_late_is_brought_in_force_replayed_agreed_to_and_rolled_back(
    shop: Platform, tmp_path: Path
) -> None:
    """A wholesaler buys more than the first version allows; the second one allows it."""
    before = served(shop)
    assert before is not None
    sale = next(one for one in records(shop) if one["product"] == PRODUCT)
    many = {"sale_id": "w-1", "occurred_at": f"{DAY}T20:00:00.000Z", "quantity": 20_000}
    wholesale = {name: value for name, value in sale.items() if name != "event_id"} | many
    (tmp_path / "wholesale").write_text(json.dumps(wholesale))
    after = before + wholesale["quantity"] * wholesale["unit_price_cents"]
    with walking(shop, "schema", tmp_path) as walker, reader(shop) as seen:
        shop.tidemark("send", "sale_made", "--quiet", "--file", str(tmp_path / "wholesale"))
        await_true(lambda: rejected(shop) == "out_of_range", 60, "the sale is not rejected")
        built(shop, "night")
        asked = {"view": "sales_by_day", "product": PRODUCT, "day": DAY}
        assert walker.looks_up("missing", **asked)[0]["revenue_cents"] == before
        schema = json.loads((shop.settings.project / "schemas/events/sale_made.v1.json").read_text())
        schema["properties"]["quantity"]["maximum"] = 1_000_000
        (shop.settings.project / "schemas/events/sale_made.v2.json").write_text(json.dumps(schema))
        restart_speed(shop)

        why = "wholesalers buy more"
        walker.sees_the_preview(walker.triggers_replay(why, "quarantined"))
        run = walker.triggers_replay(why, "dry_run", "quarantined", step="form")
        walker.waits_for(run, "agree", "awaiting_input")
        assert "1 out_of_quarantine" in walker.compares(run)
        assert served(shop) == before, "nobody sees it before somebody agrees"
        assert "sales_by_day: 1 rows differ" in walker.approves(run)
        assert walker.looks_up("counted", **asked)[0]["revenue_cents"] == after

        shop.tidemark("batch", "rollback")
        await_true(lambda: served(shop) == before, 60, "the rollback is not served")
        assert walker.looks_up("rolled-back", **asked)[0]["revenue_cents"] == before
    assert set(seen) == {before, after} and sum(seen.values()) > 20, "a reader saw the old answer, or the new one"
    assert shop.tidemark("verify")


def rejected(platform: Platform) -> str | None:
    """Why the speed layer has rejected the newest record that it rejected."""
    rejects = "SELECT control.reason FROM speed.partials WHERE view = '__reject__' ORDER BY lsn DESC LIMIT 1"
    return next((str(row[0]) for row in platform.sql(rejects)), None)
