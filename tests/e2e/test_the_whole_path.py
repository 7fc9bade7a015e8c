"""From Kafka to published, verified answers, as a user goes it: the issue of trust in one file.

The tests build on one another in order; the platform is the shared one.
"""

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest

from spark_jobs.settings import ROOT
from tests.bench import fresh, serve
from tests.bench.doors import DOORS
from tests.e2e.runs import ENDED, QUESTIONS, answers, moment, order, orders, send, state_of, trigger_batch_layer
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.platform, pytest.mark.timeout(1800)]

LATE_STORE = 777
DEAR = 99_999_999


def orders_of(platform: Platform, store: int) -> int:
    """Orders of a store two days ago, the day of the late one."""
    day = moment(days_ago=2)[:10]
    query = f"SELECT sum(orders) FROM serving.orders_by_day WHERE store_id = {store} AND day = DATE '{day}'"
    return int(platform.sql(query)[0][0] or 0)


def assert_i16(platform: Platform) -> None:
    """One publication per logical run, and no cut falls but by a rollback."""
    made = [one for one in json.loads(platform.tidemark("batch", "status", "--json"))["publications"] if one["run"]]
    assert len({one["run"] for one in made}) == len(made)
    cuts = [one["cut"] for one in sorted(made, key=lambda one: int(one["id"]))]
    assert cuts == sorted(cuts)


@pytest.fixture(scope="module")
def fed(platform: Platform) -> Iterator[Platform]:
    """A generated town with late, repeated, out-of-order and malformed records, all of it seen by the speed layer."""
    shares = ("--late-share", "0.05", "--duplicate-share", "0.05", "--malformed-share", "0.01")
    platform.tidemark("generate", "--events", "20000", "--seed", "7", *shares)
    await_true(
        lambda: platform.heartbeat().get("lag") == 0 and orders(platform) > 0, 180, "the speed layer does not catch up"
    )
    yield platform
    shutil.rmtree(platform.settings.expectations, ignore_errors=True)  # a reset leaves what people wrote


def test_merged_answers_are_there_before_any_batch_ran(fed: Platform) -> None:
    assert fed.sql("SELECT count(*) FROM serving.sessions")[0][0] > 0
    assert fed.tidemark("verify")


def backfill(platform: Platform, days: int) -> list[str]:
    """Ask Airflow for the newest days, as its form does where nothing is changed; the ids of the runs that it makes.

    After other days it would make up for the newest one, which nobody asked for.
    """
    last = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    ticks = {"from_date": (last - timedelta(days=days - 1)).isoformat(), "to_date": last.isoformat()}
    asked = {"dag_id": "batch_layer", "reprocess_behavior": "completed", "run_backwards": False, **ticks}
    asked["max_active_runs"] = 1
    before = backfilled(platform)
    platform.airflow("/backfills", asked)
    runs = backfilled(platform) - before
    assert len(runs) == days
    return sorted(runs)


def backfilled(platform: Platform) -> set[str]:
    """The runs of all backfills."""
    runs = platform.airflow("/dags/batch_layer/dagRuns?run_type=backfill&limit=100")["dag_runs"]
    return {run["dag_run_id"] for run in runs}


def rings(platform: Platform) -> set[str]:
    """The names of the alarms that ring."""
    return {alarm["name"] for alarm in json.loads(platform.run("alarms", "--json").stdout)}


def batch_runs(platform: Platform) -> list[dict[str, Any]]:
    """Airflow's runs of the batch layer, the newest first."""
    runs: list[dict[str, Any]] = platform.airflow("/dags/batch_layer/dagRuns?order_by=-run_after&limit=10")["dag_runs"]
    return runs


def mend_and_clear(platform: Platform) -> list[str]:
    """Accept the dear order by an expectation of this installation's own, and clear the task that failed."""
    mended = json.loads((ROOT / "schemas/quality/facts.order_placed.json").read_text())
    mended[0]["kwargs"]["max_value"] = DEAR
    platform.settings.expectations.mkdir()
    (platform.settings.expectations / "facts.order_placed.json").write_text(json.dumps(mended))
    platform.pause("marts", is_paused=False)
    [run] = [str(run["dag_run_id"]) for run in batch_runs(platform) if run["state"] == "failed"]
    what = {"dag_run_id": run, "task_ids": ["audit"], "include_downstream": True, "dry_run": False}
    platform.airflow("/dags/batch_layer/clearTaskInstances", what)
    return [run]


def test_a_failing_suite_publishes_nothing_and_links_its_page(fed: Platform, tmp_path: Path) -> None:
    """I17, by both real ends: the gate's exit code fails the task, and no later one runs."""
    expected = orders(fed) + 1
    send(fed, tmp_path, order(occurred_at=moment(), unit_price_cents=DEAR))
    await_true(lambda: orders(fed) == expected, 30, "the dear order does not count")
    [run] = backfill(fed, days=1)
    await_true(lambda: state_of(fed, run) in ENDED, 900, f"{run} does not end", every=2)
    assert state_of(fed, run) == "failed"
    publications = json.loads(fed.tidemark("batch", "status", "--json"))["publications"]
    assert [one["kind"] for one in publications] == ["initial"]
    assert orders(fed) == expected
    assert "gate" in rings(fed)
    links = fed.airflow(f"/dags/batch_layer/dagRuns/{run}/taskInstances/audit/links")["extra_links"]
    assert "unit_price_cents" in fed.page(links["Data Docs"])


def ledger_runs(platform: Platform) -> set[str]:
    """The runs that have built something, or could have."""
    return {run["run"] for run in json.loads(platform.tidemark("batch", "status", "--json"))["runs"]}


def assert_merged(platform: Platform, runs: list[str], begun: set[str]) -> None:
    """One run of a backfill has built all of its days, and one those of the runs by hand; the others say so."""
    links = {run: f"/dags/batch_layer/dagRuns/{quote(run)}/taskInstances/plan/links" for run in runs}
    merged_into = {run: platform.airflow(link)["extra_links"]["The run that did it"] for run, link in links.items()}
    merged = {run: page for run, page in merged_into.items() if page}
    most = 1 if all(run.startswith("backfill") for run in runs) else 2
    assert len(begun) <= min(most, len(runs) - len(merged)), "a day was built twice"
    assert {unquote(page).rpartition("/")[2] for page in merged.values()} <= {*runs} - merged.keys()
    for run in merged:
        tasks = platform.airflow(f"/dags/batch_layer/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        assert {task["state"] for task in tasks} == {"skipped"}


STARTS: dict[str, Callable[[Platform], list[str]]] = {
    "a failed task is cleared": mend_and_clear,
    "without a key": lambda platform: [trigger_batch_layer(platform)],
    "a backfill of three days": partial(backfill, days=3),
    "a backfill, a day by hand and a run by hand at once": lambda platform: [
        *backfill(platform, days=2),
        trigger_batch_layer(platform, partition_key=moment(days_ago=1)[:10]),
        trigger_batch_layer(platform),
    ],
}


@pytest.mark.parametrize(
    "start",
    [
        "a failed task is cleared",
        pytest.param("without a key", marks=pytest.mark.fault),
        pytest.param("a backfill of three days", marks=pytest.mark.fault),
        pytest.param("a backfill, a day by hand and a run by hand at once", marks=pytest.mark.fault),
    ],
)
def test_a_run_publishes_and_changes_no_answer_however_it_is_started(fed: Platform, start: str) -> None:
    """One way in `make test`, the others in `make test-faults`."""
    before, asked, known = answers(fed), itertools.cycle(range(len(QUESTIONS))), ledger_runs(fed)
    runs = STARTS[start](fed)

    def ended() -> bool:
        question = next(asked)
        seen = sorted(fed.sql(QUESTIONS[question]), key=repr)
        assert seen == before[question], "somebody saw a wrong number while a run was at work"
        return all(state_of(fed, run) in ENDED for run in runs)

    await_true(ended, 1200, f"{start}: the runs do not end", every=8)
    failed = [run for run in runs if state_of(fed, run) != "success"]
    assert not failed, [fed.why_failed("batch_layer", run) for run in failed]
    assert_merged(fed, runs, ledger_runs(fed) - known)
    assert_i16(fed)
    assert "Data Docs" not in fed.tidemark("agreement"), "the agreement has nothing to complain of"
    assert answers(fed) == before
    assert "gate" not in rings(fed)
    assert fed.tidemark("verify")


def test_the_publication_has_the_marts_built(fed: Platform) -> None:
    def states() -> list[str]:
        return [str(run["state"]) for run in fed.airflow("/dags/marts/dagRuns?limit=1")["dag_runs"]]

    await_true(lambda: states() in (["success"], ["failed"]), 600, "no marts after the publication", every=1)
    assert states() == ["success"]
    assert fed.sql("SELECT count(*) FROM marts.market_days")[0][0] > 0
    pin = [one for one in json.loads(fed.tidemark("pin", "list", "--json")) if one["schema"].startswith("pin_dbt_")][-1]
    publications = json.loads(fed.tidemark("batch", "status", "--json"))["publications"]
    [cut] = [one["cut"] for one in publications if one["id"] == pin["publication"]]
    assert pin["head"] == cut > 0, "marts are made of what is published"
    fed.pause("marts")


def test_records_sent_by_hand_count_within_seconds_or_are_quarantined(fed: Platform, tmp_path: Path) -> None:
    before, late_before = orders(fed), orders_of(fed, LATE_STORE)
    [(last,)] = fed.sql("SELECT max(lsn) FROM speed.partials")
    one = order(occurred_at=moment())
    late = order(occurred_at=moment(days_ago=2), store_id=LATE_STORE)
    send(fed, tmp_path, one, one, late, order(colour="green"), "{")
    await_true(lambda: orders(fed) == before + 2, 30, "the two good orders do not count")
    assert orders_of(fed, LATE_STORE) == late_before + 1
    rejects = f"SELECT DISTINCT control.reason FROM speed.partials WHERE view = '__reject__' AND lsn > {last}"
    await_true(lambda: {("not_in_enum",), ("not_json",)} == set(fed.sql(rejects)), 30, "the bad ones have no reasons")


def test_a_row_is_explained_down_to_its_records(fed: Platform) -> None:
    explained = fed.tidemark("explain", "orders_by_day", f"store_id={LATE_STORE}", f"day={moment(days_ago=2)[:10]}")
    assert "order_placed" in explained


def test_the_benchmarks_of_freshness_and_serving_count_here(fed: Platform) -> None:
    for first, door in zip((9000, 9100), DOORS, strict=True):
        assert len(fresh.probe(fed, range(first, first + 1), door)) == 1
    assert {row["query"] for row in serve.measure(fed, repeats=1, warming=0)} >= {
        "select 1",
        "point",
        "point by Polars",
        "point, read server",
        "key, read server",
    }
    assert len(serve.crowd(fed, clients=2, repeats=1)) == 2
