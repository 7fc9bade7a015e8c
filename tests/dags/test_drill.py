"""`drill`: what the form becomes, and that as it opens nothing live is touched."""

from collections.abc import Callable
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, ParamValidationError
from conftest import DAGS, context
from tidemark_airflow.run_id import run_id_of

from spark_jobs.orchestration.interface import DRILL, EXERCISES


@pytest.fixture(scope="module")
def drill() -> DAG:
    return DagBag(DAGS).dags[DRILL]


def test_as_the_form_opens_everything_is_done_and_the_live_application_is_left_alone(drill: DAG) -> None:
    words = drill.get_task("drill").arguments_of(context())
    assert [word for word in words if word.startswith("--only")] == [f"--only={name}" for name in EXERCISES]
    assert "--kill-live" not in words and drill.params["kill_live"] is False
    assert words[:4] == ["drill", "--run-id", run_id_of("manual__1"), "--by=ada"]


def test_what_is_filled_in_becomes_options_of_one_word(drill: DAG) -> None:
    form = {"records": 500, "from_lsn": 3, "to_lsn": 9, "seed": 7, "exercises": ["kill"], "kills": 2, "kill_live": True}
    words = drill.get_task("drill").arguments_of(context(**form))
    assert words[4:] == [
        "--records=500", "--from-lsn=3", "--to-lsn=9", "--seed=7", "--kills=2", "--only=kill", "--kill-live",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [{"records": 1}, {"exercises": ["reboot"]}, {"kills": 0}, {"kill_live": "yes"}])
def test_a_form_that_is_filled_in_wrongly_is_refused(drill: DAG, wrong: dict[str, object]) -> None:
    with pytest.raises(ParamValidationError):
        drill.params.deep_merge(wrong) if hasattr(drill.params, "deep_merge") else drill.params.update(wrong)
        drill.params.validate()


def test_a_red_drill_leads_to_its_page_all_the_same(drill: DAG, tidemark: Callable[[str], Path]) -> None:
    tidemark("echo 'rows that differ: 1'; echo page: file:///x/data_docs/drills/d/index.html; exit 1")
    task = drill.get_task("drill")
    with pytest.raises(AirflowException, match="exit code 1"):
        task.execute(context())
    assert task.page == "drills/d/index.html"
