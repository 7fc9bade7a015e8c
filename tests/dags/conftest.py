"""The DAG tests run in Airflow's environment: `.venv-airflow/bin/python -m pytest -c tests/dags/pytest.ini tests/dags`.

A home of their own is made before Airflow is imported, because Airflow reads its configuration then. In any other
environment nothing of this folder is collected or set; `make test` calls both.
"""

import atexit
import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DAGS = ROOT / "dags"


def give_airflow_a_home() -> None:
    """Point Airflow to this clone's DAGs and to a folder that lasts as long as the tests."""
    home = tempfile.mkdtemp(prefix="tidemark-dag-tests-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    os.environ |= {
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__DAGS_FOLDER": str(DAGS),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "infra/airflow/plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "reader:viewer",
        "AIRFLOW__API_AUTH__JWT_SECRET": "for the tests of this folder only; " * 2,
        "TIDEMARK_HOME": f"{home}/tidemark",
    }
    for name in ("AIRFLOW_CONFIG", "TIDEMARK_COMMAND"):
        os.environ.pop(name, None)
    sys.path[:0] = [str(DAGS), str(ROOT / "infra/airflow/plugins"), str(ROOT)]


if importlib.util.find_spec("airflow") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    give_airflow_a_home()


def context(
    run_id: str = "manual__1",
    key: str | None = None,
    pulled: Any = None,
    under_way: int = 1,
    run_type: str = "manual",
    siblings: Mapping[str, str | None] | None = None,
    cancelled: Collection[str] = (),
    task: str = "plan",
    **form: Any,
) -> Any:
    """What Airflow gives to a task.

    pulled: what the task before has left. form: fields that somebody has changed, the others are as the forms open
    them. under_way: so many runs of the DAG. siblings: other runs, each with the state of its `plan`; `cancelled`: of
    backfills that were.
    """
    from tidemark_airflow.drill_form import DRILL_PARAMS
    from tidemark_airflow.replay_form import PARAMS

    opened = {name: param.value for name, param in {**DRILL_PARAMS, **PARAMS}.items() if name != "reason"}
    filled = opened | {"reason": "a test"} | form
    run = SimpleNamespace(
        dag_id="batch_layer", run_id=run_id, run_type=run_type, partition_key=key, triggering_user_name="ada"
    )
    plans = {run: {"plan": state} for run, state in (siblings or {}).items()}
    ti = SimpleNamespace(
        id="ti",
        task_id=task,
        run_id=run_id,
        xcom_pull=lambda task_ids: pulled,
        get_dr_count=lambda dag_id, states, run_ids=None: (
            under_way if run_ids is None else sum(run not in cancelled for run in run_ids)
        ),
        get_task_states=lambda dag_id, task_ids: plans,
    )
    return {"dag_run": run, "params": filled, "ti": ti, "task_instance": ti}


@pytest.fixture
def tidemark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a shell script in the place of the command; it sees the arguments as $@ and works in a temporary folder."""

    def put(script: str) -> Path:
        path = tmp_path / "tidemark"
        path.write_text(f"#!/usr/bin/env bash\ncd {tmp_path}\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("TIDEMARK_COMMAND", str(path))
        return tmp_path

    return put
