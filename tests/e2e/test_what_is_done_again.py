"""Replays as people ask for them: Airflow's form, Required actions, and readers who see nothing before somebody agrees.

The file runs after those that publish for the first time.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.e2e.runs import ENDED, moment, order, send, state_of, trigger_batch_layer
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.fault, pytest.mark.timeout(1800)]

STORE, LOST = 4_711, 4_712
FORM = {"reason": "a disk lost rows", "origin": "facts", "views": ["orders_by_day"]}


def served(platform: Platform) -> dict[int, int]:
    query = f"SELECT store_id, sum(orders) FROM serving.orders_by_day WHERE store_id IN ({STORE}, {LOST}) GROUP BY 1"
    return dict(platform.sql(query))


@pytest.fixture(scope="module")
def spoilt(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """A platform that serves a version of a table from which the rows of a store are lost."""
    orders = [order(occurred_at=moment(), store_id=store) for store in (STORE, LOST)]
    send(platform, tmp_path_factory.mktemp("sent"), *orders)
    await_true(lambda: served(platform) == {STORE: 1, LOST: 1}, 60, "the orders do not count")
    run = trigger_batch_layer(platform)
    await_true(lambda: state_of(platform, run) in ENDED, 900, f"{run} does not end", every=2)
    assert state_of(platform, run) == "success"
    store = platform._ledger
    table, current = DeltaTable(platform.delta("batch.orders_by_day")), store.current_publication()
    assert current is not None
    table.delete(f"store_id = {LOST}")
    sources = store.current_sources()
    lossy = replace(sources["orders_by_day"], batch_version=table.version())
    published = store.begin_publication("batch", {**sources, "orders_by_day": lossy}, cut=current.cut)
    store.finish_publication(published.id)
    await_true(lambda: served(platform) == {STORE: 1}, 120, "the loss is not served", every=1)
    yield platform


def replayed(platform: Platform, **form: Any) -> str:
    """A run of the DAG with this form; its id."""
    asked = {"logical_date": None, "conf": {**FORM, **form}}
    return str(platform.airflow("/dags/replay/dagRuns", asked)["dag_run_id"])


def tasks(platform: Platform, run: str) -> dict[str, str]:
    found = platform.airflow(f"/dags/replay/dagRuns/{run}/taskInstances")["task_instances"]
    return {task["task_id"]: task["state"] for task in found}


def ends(platform: Platform, run: str) -> str:
    def state() -> str:
        return str(platform.airflow(f"/dags/replay/dagRuns/{run}")["state"])

    await_true(lambda: state() in ENDED, 600, f"{run} does not end", every=1)
    return state()


def answered(platform: Platform, run: str, option: str) -> str:
    """Answer under Required actions; what it showed."""
    await_true(lambda: tasks(platform, run)["agree"] == "awaiting_input", 600, "nobody is asked", every=1)
    at = f"/dags/replay/dagRuns/{run}/taskInstances/agree/-1/hitlDetails"
    asked = platform.airflow(at)
    assert served(platform) == {STORE: 1}, "nobody sees it before somebody agrees"
    platform.airflow(at, {"chosen_options": [option], "params_input": {}}, "PATCH")
    return str(asked["body"])


def newest(platform: Platform) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(platform.tidemark("replay", "list", "--json"))[0]
    return found


def test_a_dry_run_ends_with_its_preview(spoilt: Platform) -> None:
    run = replayed(spoilt)
    assert ends(spoilt, run) == "success"
    states = tasks(spoilt, run)
    assert states["preview"] == "success" and {states[name] for name in states if name != "preview"} == {"skipped"}
    assert (newest(spoilt)["state"], newest(spoilt)["asked_by"]) == ("planned", "admin")


def test_what_somebody_rejects_changes_nothing(spoilt: Platform) -> None:
    run = replayed(spoilt, dry_run=False)
    assert f"{LOST}" in answered(spoilt, run, "Reject")
    assert ends(spoilt, run) == "success" and tasks(spoilt, run)["publish"] == "skipped"
    assert newest(spoilt)["state"] == "cancelled"
    assert served(spoilt) == {STORE: 1}


def test_what_somebody_approves_is_served_and_the_same_once_more_asks_nobody(spoilt: Platform) -> None:
    run = replayed(spoilt, dry_run=False)
    body = answered(spoilt, run, "Approve")
    assert "a disk lost rows" in body and "orders_by_day: 1 rows differ (1 new)" in body
    assert ends(spoilt, run) == "success"
    assert served(spoilt) == {STORE: 1, LOST: 1}
    assert (newest(spoilt)["state"], newest(spoilt)["approved_by"]) == ("published", "admin")
    again = replayed(spoilt, dry_run=False)
    assert ends(spoilt, again) == "success" and set(tasks(spoilt, again).values()) == {"success"}
    assert newest(spoilt)["state"] == "nothing differs"
    lossy = json.loads(spoilt.tidemark("batch", "status", "--json"))["publications"][2]["id"]
    asked = f"SELECT sum(orders) AS orders FROM orders_by_day WHERE store_id = {LOST}"
    assert json.loads(spoilt.tidemark("sql", asked, "--format", "json", "--as-of", str(lossy))) == [{"orders": None}]
    assert spoilt.tidemark("verify")
