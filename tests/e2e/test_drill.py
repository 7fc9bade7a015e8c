"""A game day from Airflow's form: the shadow platform is killed, the live one answers as before, and has lost nothing.

The file runs after those that publish for the first time.
"""

import json
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from infra.embedded import leftovers
from tests.e2e.runs import ENDED, answers
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.fault, pytest.mark.timeout(1800)]
KILLS = 4
FORM = {"records": 3_000, "seed": 7, "kills": KILLS}


@pytest.fixture(scope="module")
def fed(platform: Platform) -> Iterator[Platform]:
    """A platform with some thousand records, late, repeated and malformed ones among them, and nothing on the way."""
    shares = ("--late-share", "0.05", "--duplicate-share", "0.05", "--malformed-share", "0.01")
    platform.tidemark("generate", "--events", "4000", "--seed", "18", *shares)
    await_true(lambda: platform.heartbeat().get("lag") == 0, 180, "the speed layer does not catch up")
    yield platform


def drilled(platform: Platform, **form: Any) -> dict[str, Any]:
    """The figures of a drill that was triggered with this form, and was green; its page has them."""
    asked = {"logical_date": None, "conf": {**FORM, **form}}
    run = str(platform.airflow("/dags/drill/dagRuns", asked)["dag_run_id"])

    def state() -> str:
        return str(platform.airflow(f"/dags/drill/dagRuns/{run}")["state"])

    await_true(lambda: state() in ENDED, 1500, f"{run} does not end", every=2)
    links = platform.airflow(f"/dags/drill/dagRuns/{run}/taskInstances/drill/links")["extra_links"]
    page = links["Data Docs"].rpartition("/docs/")[2]
    figures: dict[str, Any] = json.loads((platform.settings.data_docs / page).with_name("report.json").read_text())
    assert state() == "success", figures
    assert "rows that differ" in platform.page(links["Data Docs"])
    return figures


def test_i3_i10_a_drill_proves_what_it_served_and_nothing_live_changes(fed: Platform) -> None:
    before, beat, files = answers(fed), fed.heartbeat(), {*fed.settings.home.iterdir()}
    report = drilled(fed)
    assert report["holds"] and report["differing"] == 0 and report["by"] == "admin"
    assert report["records"] + report["left_out"] == FORM["records"]
    assert all(report["sent"][role] > 0 for role in ("event", "repeat", "malformed"))
    assert len(report["kills"]) == KILLS and report["starts"] == KILLS + 1
    assert report["log"]["records"] >= sum(report["sent"].values())
    assert 0 < report["log"]["cut"] < report["log"]["head"]
    by_sent = [view["sent"] for view in report["views"].values() if view["sent"] is not None]
    assert len(report["views"]) >= 20 and len(by_sent) >= 15 and sum(by_sent) > 100
    assert answers(fed) == before
    assert (fed.heartbeat()["pid"], fed.heartbeat()["epoch"]) == (beat["pid"], beat["epoch"])
    assert {*fed.settings.home.iterdir()} - files <= {fed.settings.data_docs}
    assert not [*leftovers.marked(fed.settings.shadow_home)]


def test_i10_the_live_application_is_killed_where_the_form_says_so_and_comes_back(fed: Platform) -> None:
    before, pid = answers(fed), fed.heartbeat()["pid"]
    report = drilled(fed, kill_live=True, exercises=["repeat"])
    assert report["holds"] and not report["kills"] and report["live"]["seconds"] > 0
    assert {"holds"} <= {found["state"] for found in report["live"]["findings"]} <= {"holds", "nothing yet"}
    assert not psutil.pid_exists(pid) and fed.heartbeat()["pid"] != pid
    assert answers(fed) == before


def test_what_a_stopped_drill_leaves_is_removed(fed: Platform) -> None:
    run = str(fed.airflow("/dags/drill/dagRuns", {"logical_date": None, "conf": FORM})["dag_run_id"])
    await_true(lambda: len([*leftovers.marked(fed.settings.shadow_home)]) >= 3, 300, "no shadow platform starts")
    fed.airflow(f"/dags/drill/dagRuns/{run}", {"state": "failed"}, "PATCH")
    await_true(lambda: not [*leftovers.marked(fed.settings.shadow_home)], 120, "its processes go on", every=1)
    await_true(lambda: not [*fed.settings.shadow_home.glob("*")], 60, "its files stay", every=1)
    assert fed.heartbeat()["state"] == "running"
