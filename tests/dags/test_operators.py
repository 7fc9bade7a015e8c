"""The `tidemark` command as a task: what it is given, and what its exit code means."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
)
from conftest import context
from tidemark_airflow.operators import (
    AuditStep,
    BatchStep,
    PinnedStep,
    PlanStep,
    PublishStep,
    TrainStep,
)
from tidemark_airflow.policy import PUBLICATION
from tidemark_airflow.run_id import day_of, pin_of, run_id_of

from spark_jobs.orchestration import interface

Put = Callable[[str], Path]
RECORD = 'printf "%s\\n" "$@" > given'


class Events(dict[Any, SimpleNamespace]):
    """Outlet events of one task: asset -> the partitions that it named."""

    def __missing__(self, asset: Any) -> SimpleNamespace:
        self[asset] = SimpleNamespace(partitions=[])
        self[asset].add_partitions = self[asset].partitions.append
        return self[asset]


def words(folder: Path) -> list[str]:
    return (folder / "given").read_text().splitlines()


def test_plan_is_given_the_run_and_the_day(tidemark: Put) -> None:
    folder = tidemark(RECORD)
    PlanStep(task_id="plan").execute(context("backfill__2013-01-01", "2013-01-01"))
    named = ["--run-id", run_id_of("backfill__2013-01-01"), "--dag-run=backfill__2013-01-01"]
    assert words(folder) == ["batch", "plan", *named, "--day=2013-01-01"]


def test_a_run_without_a_key_names_no_day(tidemark: Put) -> None:
    folder = tidemark(RECORD)
    PlanStep(task_id="plan").execute(context())
    assert not [word for word in words(folder) if word.startswith("--day")]


def test_a_run_with_a_strange_name_keeps_it_to_itself(tidemark: Put) -> None:
    folder = tidemark(RECORD)
    PlanStep(task_id="plan").execute(context("a (b) $(c)"))
    assert not [word for word in words(folder) if word.startswith("--dag-run")]


def test_an_hourly_run_takes_in_what_is_new_and_rebuilds_no_day_but_a_backfill_does(tidemark: Put) -> None:
    """Twenty-four runs are for one day."""
    folder, plan = tidemark(RECORD), PlanStep(task_id="plan", forces_scheduled_day=False)
    plan.execute(context(key="2013-01-01", run_type="scheduled"))
    assert "--day=2013-01-01" not in words(folder)
    plan.execute(context(key="2013-01-01", run_type="backfill"))
    assert "--day=2013-01-01" in words(folder)


def test_the_first_of_a_backfill_speaks_for_all_its_days_that_nobody_has_cancelled(tidemark: Put) -> None:
    """Airflow lets but some of them begin: with the form's default one at a time."""
    folder, plan = tidemark(RECORD), PlanStep(task_id="plan")
    days = [f"{date(2013, 1, 1) + timedelta(days=n)}" for n in range(250)]
    runs = [f"backfill__2026-01-09T00:00:00+00:00__{day}__x_Y__{n}" for n, day in enumerate(days)]
    states = dict.fromkeys(runs) | {runs[2]: "success", runs[3]: "up_for_reschedule", "manual__1": None}
    asked = context(runs[0], days[0], run_type="backfill", siblings=states, cancelled=[runs[5], runs[200]])
    plan.execute(asked)
    also = [word for word in words(folder) if word.startswith("--also")]
    left_out = {runs[0], runs[2], runs[5], runs[200]}
    asked_for = {run: day for run, day in zip(runs, days, strict=True) if run not in left_out}
    assert also == [f"--also={run_id_of(run)}={day}" for run, day in asked_for.items()]
    plan.execute(context(runs[0], days[0], siblings=states))
    assert "--also" not in (folder / "given").read_text(), "a run by hand speaks for itself"


def test_only_the_plan_is_given_the_day(tidemark: Put) -> None:
    folder = tidemark(RECORD)
    BatchStep(task_id="build", step="build").execute(context(key="2013-01-01"))
    assert words(folder) == ["batch", "build", "--run-id", run_id_of("manual__1")]


@pytest.mark.parametrize("key", ["2013-1-1", "20130101", "2013-W01-1", "2013-02-30", "x; rm -rf /", "--help", ""])
def test_a_key_that_is_no_day_is_refused_before_anything_runs(tidemark: Put, key: str) -> None:
    folder = tidemark(RECORD)
    with pytest.raises(ValueError):
        PlanStep(task_id="plan").execute(context(key=key))
    assert not (folder / "given").exists()


def test_run_ids_are_plain_stable_and_never_meet() -> None:
    hostile = ["a/b", "a b", "A/B", "a;b", "$(a)", "--a", "é", "", "x" * 300, "x" * 301]
    made = [run_id_of(name) for name in hostile]
    assert made == [run_id_of(name) for name in hostile]
    assert len(set(made)) == len(hostile)
    assert run_id_of("scheduled__2026-01-02T00:00:00+00:00").startswith("scheduled-2026-01-02t00-00-")
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(name) < 48 for name in made)


def test_the_day_is_passed_on_as_it_was_written() -> None:
    assert (day_of("2024-02-29"), day_of(None)) == ("2024-02-29", None)


def test_a_pin_is_named_after_its_run(tidemark: Put) -> None:
    folder = tidemark(RECORD)
    PinnedStep(task_id="build", arguments=("dbt", "build", "--pin")).execute(context("asset_triggered__2"))
    assert words(folder) == ["dbt", "build", "--pin", pin_of("asset_triggered__2")]


def test_a_failed_test_of_a_mart_is_red_at_once(tidemark: Put) -> None:
    tidemark(f"exit {interface.CHECKS_FAILED}")
    with pytest.raises(AirflowFailException, match="would fail again"):
        PinnedStep(task_id="build", arguments=("dbt", "build", "--pin")).execute(context("asset_triggered__2"))


def test_training_is_given_the_model_and_the_run_that_published(tidemark: Put) -> None:
    folder = tidemark(RECORD)
    TrainStep(task_id="train").execute(context("r1", "2013-01-01"))
    assert words(folder) == ["model", "train", "--run-id", run_id_of("r1")]


def test_a_run_that_must_wait_comes_back_soon(tidemark: Put) -> None:
    tidemark(f"exit {interface.TRY_LATER}")
    for under_way, minutes in ((1, 0), (15, 2)):
        with pytest.raises(AirflowRescheduleException) as later:
            PlanStep(task_id="plan").execute(context(under_way=under_way))
        delay = later.value.reschedule_date - datetime.now(UTC)
        assert timedelta(minutes=minutes) < delay < timedelta(minutes=minutes + 1), (
            "the more wait, the rarer each looks"
        )


def test_a_merged_run_skips_the_rest_and_links_the_run_that_did_its_day(tidemark: Put) -> None:
    said = (
        f"tidemark: run r2 is {interface.MERGED_INTO} r1 (backfill__2013-01-01T00:00:00+00:00), which has done its days"
    )
    tidemark(f"echo '{said}' >&2; exit {interface.NOTHING_TO_DO}")
    with DAG(interface.BATCH_LAYER, schedule=None):
        plan = PlanStep(task_id="plan")
    with pytest.raises(AirflowSkipException, match="nothing for this run to do"):
        plan.execute(context())
    (link,) = PlanStep.operator_extra_links
    page = "/dags/batch_layer/runs/backfill__2013-01-01T00%3A00%3A00%2B00%3A00"
    assert (link.name, link.get_link(plan, ti_key=None)) == ("The run that did it", page)


def test_a_plan_that_is_not_merged_links_no_run(tidemark: Put) -> None:
    tidemark("echo 'a run that was merged into run (nothing)'")
    plan = PlanStep(task_id="plan")
    plan.execute(context())
    assert PlanStep.operator_extra_links[0].get_link(plan, ti_key=None) == ""


def test_a_failed_audit_is_red_at_once_and_links_the_page_that_says_why(tidemark: Put) -> None:
    page = "validations/facts/order_placed/r-1/20260101T000000.0Z/5f.html"
    tidemark(f'echo "Data Docs: file:///some/where/data_docs/{page}" >&2; exit {interface.CHECKS_FAILED}')
    audit = AuditStep(task_id="audit", step="audit")
    with pytest.raises(AirflowFailException, match=f"/tidemark/docs/{page}"):
        audit.execute(context())
    link, *_ = AuditStep.operator_extra_links
    assert (link.name, link.get_link(audit, ti_key=None)) == ("Data Docs", f"/tidemark/docs/{page}")


def test_each_step_of_a_run_links_what_came_of_its_views_and_their_sql() -> None:
    for step in (BatchStep(task_id="build", step="build"), AuditStep(task_id="audit", step="audit")):
        links = {link.name: link.get_link(step, ti_key=SimpleNamespace(run_id="manual__1"))
                 for link in step.operator_extra_links}  # fmt: skip
        assert links["Outcome per view"] == f"/tidemark/docs/runs/{run_id_of('manual__1')}/index.html"
        assert links["SQL of the views"] == "/tidemark/docs/runs/views.html"


@pytest.mark.parametrize("said", ["", "file:///x/data_docs/../../secrets.html", "file:///x/data_docs/a?b=.html"])
def test_without_a_page_the_link_leads_to_the_index(tidemark: Put, said: str) -> None:
    tidemark(f"echo '{said}'; exit {interface.CHECKS_FAILED}")
    audit = AuditStep(task_id="audit", step="audit")
    with pytest.raises(AirflowFailException, match=r"/tidemark/docs/$"):
        audit.execute(context())
    assert AuditStep.operator_extra_links[0].get_link(audit, ti_key=None) == "/tidemark/docs/"


@pytest.mark.parametrize("code", [1, 2, 137])
def test_any_other_code_is_red_and_tried_again(tidemark: Put, code: int) -> None:
    tidemark(f"exit {code}")
    with pytest.raises(AirflowException, match=f"exit code {code}") as failure:
        AuditStep(task_id="audit", step="audit").execute(context())
    assert not isinstance(failure.value, AirflowFailException | AirflowRescheduleException)


def test_a_publication_is_announced_under_its_run_with_or_without_a_day(tidemark: Put) -> None:
    tidemark("exit 0")
    for given in (context("r1"), context("r1", "2013-01-01")):
        given["outlet_events"] = Events()
        PublishStep(task_id="publish").execute(given)
        assert given["outlet_events"][PUBLICATION].partitions == [run_id_of("r1")]


def test_nothing_is_announced_when_publishing_failed(tidemark: Put) -> None:
    tidemark("exit 1")
    given = context() | {"outlet_events": Events()}
    with pytest.raises(AirflowException):
        PublishStep(task_id="publish").execute(given)
    assert given["outlet_events"] == {}
