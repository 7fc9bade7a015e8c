"""What holds for every DAG: it is there, says whose it is and what to do, and never builds a shell string."""

import ast
import json
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from conftest import DAGS, ROOT
from tidemark_airflow.notify import FailureNotifier
from tidemark_airflow.operators import BatchStep, TidemarkOperator
from tidemark_airflow.policy import PUBLICATION, PUBLISHING_POOL, REPLAY_POOL, Owner, Tag
from tidemark_airflow.replay_steps import Agreement

from spark_jobs.orchestration.interface import BATCH_STEPS

EXPECTED = {
    "batch_layer": ["plan", "build", "audit", "publish", "train"],
    "drill": ["drill"],
    "maintenance": ["verify", "erasures", "retention", "tidy", "airflow"],
    "maintenance_hourly": ["trim", "mirror"],
    "maintenance_weekly": ["plan", "build", "audit", "publish"],
    "marts": ["pin", "build", "docs"],
    "replay": ["preview", "plan", "build", "audit", "compare", "agree", "answer", "publish"],
    "speed_layer": ["watch"],
}
FILES = sorted(DAGS.rglob("*.py"))
# What a DAG file costs at each parse, beyond Airflow itself: our few modules and the standard library's.
IMPORTS_ALLOWED = 40
NEVER_IMPORTED = ("pyspark", "delta", "great_expectations", "pandas", "numpy", "pyarrow", "duckdb")
OF_THE_PIPELINE = ["spark_jobs", "spark_jobs.orchestration", "spark_jobs.orchestration.interface"]


@pytest.fixture(scope="module")
def bag() -> DagBag:
    return DagBag(DAGS)


@pytest.fixture(params=EXPECTED)
def dag(request: pytest.FixtureRequest, bag: DagBag) -> DAG:
    return bag.dags[request.param]


def test_exactly_the_expected_dags_and_tasks_are_found(bag: DagBag) -> None:
    assert bag.import_errors == {}
    assert {dag_id: list(dag.task_ids) for dag_id, dag in bag.dags.items()} == EXPECTED


def test_tasks_follow_one_another(dag: DAG) -> None:
    for task, following in zip(EXPECTED[dag.dag_id], EXPECTED[dag.dag_id][1:], strict=False):
        assert dag.get_task(task).downstream_task_ids == {following}


def test_owner_and_tags_come_from_the_enums(dag: DAG) -> None:
    assert {task.owner for task in dag.tasks} <= set(Owner)
    assert dag.tags and set(dag.tags) <= set(Tag)


def test_the_documentation_says_what_to_do_when_it_is_red(dag: DAG) -> None:
    for heading in ("**When.**", "**When it is red.**", "what to do"):
        assert heading in (dag.doc_md or "")
    for task in dag.task_ids:
        assert dag.dag_id == "speed_layer" or f"`{task}`" in (dag.doc_md or "")


def test_a_dag_runs_one_at_a_time_never_catches_up_and_needs_no_unpausing(dag: DAG) -> None:
    """Runs of the batch layer may wait beside each other: the ledger lets one in at a time, and merges the others."""
    at_once = 32 if dag.dag_id == "batch_layer" else 1
    assert (dag.max_active_runs, dag.catchup, dag.is_paused_upon_creation) == (at_once, False, False)


def test_retries_are_stated(dag: DAG) -> None:
    assert "retries" in dag.default_args
    assert {task.retries for task in dag.tasks} == {0 if dag.dag_id in ("speed_layer", "drill") else 2}


def test_every_task_but_one_that_waits_for_people_is_stopped_after_a_day_and_a_drill_after_two_hours(dag: DAG) -> None:
    limit = timedelta(hours=2) if dag.dag_id == "drill" else timedelta(days=1)
    for task in dag.tasks:
        assert task.execution_timeout == (None if isinstance(task, Agreement) else limit)


def test_people_are_told_where_a_run_that_publishes_fails(dag: DAG) -> None:
    for task in dag.tasks:
        told = [type(callback) for callback in task.on_failure_callback or ()]
        assert (FailureNotifier in told) == (Tag.PUBLISHES in dag.tags)
        if Tag.PUBLISHES in dag.tags:
            assert (task.task_id in BATCH_STEPS) == isinstance(task, BatchStep)
        if isinstance(task, BatchStep):
            assert task.arguments[:2] == ("batch", task.task_id)


def test_every_task_is_an_argument_list_of_plain_words_and_no_template(dag: DAG) -> None:
    for task in dag.tasks:
        assert tuple(task.template_fields) == ()
        assert isinstance(task, TidemarkOperator | Agreement)
        arguments = task.arguments if isinstance(task, TidemarkOperator) else ()
        assert isinstance(arguments, tuple)
        assert all(re.fullmatch(r"-{0,2}[a-z0-9][a-z0-9_-]*", word) for word in arguments)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_file_makes_a_shell_string(file: Path) -> None:
    tree = ast.parse(file.read_text())
    keywords = {word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords}
    names = {node.attr if isinstance(node, ast.Attribute) else node.id
             for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)}  # fmt: skip
    assert not {"shell", "bash_command", "executable"} & keywords
    assert not {"system", "popen", "getoutput", "BashOperator", "eval", "exec"} & names


def test_dag_files_only_wire() -> None:
    wiring = sorted(DAGS.glob("*.py"))
    assert [file.stem for file in wiring] == sorted(EXPECTED)
    assert all(len(file.read_text().splitlines()) <= 60 for file in wiring)


def test_parsing_imports_little_and_of_the_pipeline_only_the_interface() -> None:
    modules = (f"{DAGS.joinpath(dag_id)}.py" for dag_id in EXPECTED)
    script = (
        "import sys, runpy; import airflow.sdk, airflow.configuration; from airflow.sdk import DAG, Asset, "
        "BaseOperator, BaseOperatorLink, Context, CronPartitionTimetable, CronTriggerTimetable, "
        "PartitionedAssetTimetable, Param, chain; from airflow.providers.standard.operators import hitl; "
        f"sys.path[:0] = {[str(DAGS), str(ROOT)]!r}; before = set(sys.modules)\n"
        f"for file in {list(modules)!r}: runpy.run_path(file)\n"
        "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    )
    said = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    imported = json.loads(said.splitlines()[-1])
    assert "tidemark_airflow.operators" in imported
    assert [name for name in imported if name.split(".")[0] in NEVER_IMPORTED] == []
    assert [name for name in imported if name.split(".")[0] == "spark_jobs"] == OF_THE_PIPELINE
    assert len(imported) <= IMPORTS_ALLOWED, imported


def test_publishing_waits_for_the_one_slot_of_its_pool(bag: DagBag) -> None:
    pools = json.loads((ROOT / "infra/airflow/pools.json").read_text())
    assert pools[PUBLISHING_POOL]["slots"] == 1
    publishing = [task for dag in bag.dags.values() if Tag.PUBLISHES in dag.tags for task in dag.tasks if task.outlets]
    assert sorted((task.dag_id, task.task_id, task.pool, task.outlets) for task in publishing) == [
        (dag_id, "publish", PUBLISHING_POOL, [PUBLICATION])
        for dag_id in ("batch_layer", "maintenance_weekly", "replay")
    ]


def test_what_a_replay_computes_waits_for_the_one_slot_of_its_pool(bag: DagBag) -> None:
    pools = json.loads((ROOT / "infra/airflow/pools.json").read_text())
    assert pools[REPLAY_POOL]["slots"] == 1
    computing = [
        (dag.dag_id, task.task_id) for dag in bag.dags.values() for task in dag.tasks if task.pool == REPLAY_POOL
    ]
    assert sorted(computing) == [("replay", "audit"), ("replay", "build"), ("replay", "compare")]


def test_c5_watching_the_speed_layer_costs_less_than_300_runs_a_day(bag: DagBag) -> None:
    timetable, day = _scheduled(bag, "speed_layer").timetable, pendulum.datetime(2026, 3, 1)
    runs, at = 0, timetable._get_next(day)
    while at < day + timedelta(days=1):
        runs, at = runs + 1, timetable._get_next(at)
    assert 200 < runs < 300


def test_marts_listen_to_the_publication(bag: DagBag) -> None:
    assert bag.dags["marts"].timetable.asset_condition == PUBLICATION


def test_a_backfill_of_three_days_makes_three_partitions(bag: DagBag) -> None:
    timetable = _scheduled(bag, "batch_layer").timetable
    days = timetable.iter_partition_dagrun_infos(
        earliest=datetime(2013, 1, 1, tzinfo=UTC), latest=datetime(2013, 1, 3, tzinfo=UTC)
    )
    assert [info.partition_key for info in days] == ["2013-01-01", "2013-01-02", "2013-01-03"]


def test_the_run_at_midnight_is_for_the_day_that_has_ended(bag: DagBag) -> None:
    timetable = _scheduled(bag, "batch_layer").timetable
    assert timetable._get_partition_info(datetime(2026, 3, 1, tzinfo=UTC))[1] == "2026-02-28"


def _scheduled(bag: DagBag, dag_id: str) -> DAG:
    """The DAG as the scheduler sees it: serialised and back."""
    return DagSerialization.from_dict(DagSerialization.to_dict(bag.dags[dag_id]))
