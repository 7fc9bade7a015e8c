"""The batch commands as a program sees them: exit codes, words, and what the ledger keeps of a failure."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.schema import Publication
from spark_jobs.ledger.store import Store
from spark_jobs.orchestration.interface import NOTHING_TO_DO
from spark_jobs.settings import settings
from spark_jobs.speed.alarms import of_runs


def tidemark(*arguments: str) -> tuple[int, str]:
    """Exit code and everything it printed."""
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.output


@pytest.fixture(autouse=True)
def _home(platform_home: Path, with_passwords: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_THRIFT_PORT", "1")  # nobody is there
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_a_plan_says_its_cut_and_a_second_run_waits() -> None:
    code, said = tidemark("batch", "plan", "--run-id", "r1", "--day", "2026-01-05")
    assert code == 0 and "run r1: cut 0" in said and "2026-01-05" in said
    assert tidemark("batch", "plan", "--run-id", "r1")[0] == 0, "a retry is no other run"
    code, said = tidemark("batch", "plan", "--run-id", "r2")
    assert code == 75 and "run r1 is active" in said


def test_a_run_that_waits_is_listed_with_its_days_and_ends_with_6_once_another_has_done_them() -> None:
    plan = ("batch", "plan", "--run-id")
    tidemark(*plan, "r1")
    assert tidemark(*plan, "r2", "--day", "2026-01-05")[0] == 75
    [waiting] = json.loads(tidemark("batch", "status", "--json")[1])["waiting"]
    assert (waiting["run"], waiting["days"], waiting["taken_by"]) == ("r2", ["2026-01-05"], None)
    store = ledger.open()
    store.progress("r1", "publish")
    assert "days of 1 runs that waited are among them: r2" in tidemark(*plan, "r3", "--dag-run", "manual__3")[1]
    store.progress("r3", "publish")
    store.close()
    code, said = tidemark(*plan, "r2", "--day", "2026-01-05")
    assert code == 6 and "run r2 is merged into run r3 (manual__3), which has done its days" in said
    assert json.loads(tidemark("batch", "status", "--json")[1])["waiting"] == []


def test_a_rollback_names_the_versions_that_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def rollback(_execute: object, _views: object, store: Store, _to: int | None) -> Publication:
        store.promote("orders_by_day", 1)
        return Publication(id=3, restores=1, cut=7)

    with closing(ledger.open()) as store:
        store.promote("orders_by_day", 2)
        store.promote("word_count", 2)
    monkeypatch.setattr("spark_jobs.cli.batch.thrift", lambda: nullcontext(None))
    monkeypatch.setattr("spark_jobs.cli.batch.rollback", rollback)
    code, said = tidemark("batch", "rollback")
    assert code == 0 and "publication 3 is in force: what publication 1 showed, cut 7" in said
    assert "serving.orders_by_day is version 1 again" in said and "word_count" not in said


def test_what_the_settings_have_built_once_more_is_named_where_it_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_REBUILD_VIEWS", "orders_by_day,nothing")
    settings.cache_clear()
    code, said = tidemark("batch", "plan", "--rebuild", "--run-id", "r1")
    assert code == 1 and "no view is called nothing" in said


def test_where_nothing_is_built_yet_there_is_nothing_to_build_once_more_and_no_alarm() -> None:
    """A platform that starts on the day of the weekly DAG is not at fault."""
    code, said = tidemark("batch", "plan", "--rebuild", "--run-id", "r1")
    assert code == NOTHING_TO_DO and "nothing is built yet" in said
    with closing(ledger.open()) as store:
        assert not store.stopped_plans()


def test_a_step_without_a_plan_is_refused() -> None:
    code, said = tidemark("batch", "build", "--run-id", "r1")
    assert code == 1 and "`tidemark batch plan --run-id r1` comes first" in said


def test_a_failed_publish_is_written_down_and_another_run_may_begin() -> None:
    tidemark("batch", "plan", "--run-id", "r1")
    code, said = tidemark("batch", "publish", "--run-id", "r1")
    assert code == 1 and "Thrift server" in said
    store = ledger.open()
    run = store.run("r1")
    store.close()
    assert run is not None and run.state == "failed" and run.error is not None and "Thrift server" in run.error
    assert tidemark("batch", "plan", "--run-id", "r2")[0] == 0


def test_what_failed_without_a_word_is_written_down_and_what_said_why_keeps_its_words() -> None:
    tidemark("batch", "plan", "--run-id", "monday")
    with closing(ledger.open()) as store:
        store.plan_stopped("tuesday", "the disk was full")
        for run_id in ("monday", "tuesday", "wednesday"):
            assert tidemark("batch", "failed", "--run-id", run_id, "--task", "build") == (0, "")
        killed = "build was killed, or did not begin, and could not say why: Airflow's log of it has what is known"
        assert [(run.run_id, run.state, run.error) for run in store.runs()] == [("monday", "failed", killed)]
        said = {stopped.run_id: stopped.error for stopped in store.stopped_plans()}
        assert said == {"tuesday": "the disk was full", "wednesday": killed}
        store.progress("monday", "publish")
        tidemark("batch", "failed", "--run-id", "monday", "--task", "publish")
        assert [run.state for run in store.runs()] == ["finished"], "killed after its last word"


def with_views(folder: Path, *arguments: str) -> tuple[int, str]:
    """Exit code and the words of a process whose project has these view files."""
    environment = {**os.environ, "TIDEMARK_VIEWS_FOLDER": str(folder)}
    command = [sys.executable, "-c", "from spark_jobs.cli import main; main()", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("views")


def test_a_plan_that_a_view_file_stops_rings_until_a_run_begins(views: Path) -> None:
    broken = views / "sales.py"
    broken.write_text("from spark_jobs.definitions import Nothing\n")
    code, said = with_views(views, "batch", "plan", "--run-id", "monday")
    assert (code, said.count("\n")) == (1, 1), "a line, and no traceback"
    assert said.startswith(f"tidemark: {broken}:1: it does not import: ImportError")
    with closing(ledger.open()) as store:
        assert store.runs() == []
        [shown] = json.loads(tidemark("batch", "status", "--json")[1])["stopped_plans"]
        assert shown["run"] == "monday" and str(broken) in shown["error"]
        [(alarm, words)] = of_runs(store)
        assert alarm == "run failed" and words.startswith(f"run monday could not be planned: {broken}:1: it does not")
        assert tidemark("batch", "plan", "--run-id", "tuesday")[0] == 0
        assert tidemark("batch", "plan", "--run-id", "wednesday")[0] == 75
        assert [*of_runs(store)] == [], "one that waits for another has not failed"


def test_a_view_file_that_does_not_load_breaks_no_promise(views: Path) -> None:
    (views / "sales.py").write_text("view = 1\n")
    code, said = with_views(views, "verify")
    assert code == 2 and said.startswith(f"tidemark: {views / 'sales.py'}"), said


AS_OF = ("sql", "SELECT 1", "--as-of", "1", "--engine", "spark")


@pytest.mark.parametrize("words", [("batch", "diff", "1", "2"), AS_OF], ids=["diff", "as of"])
def test_a_publication_that_is_not_there_is_named(words: tuple[str, ...]) -> None:
    code, said = tidemark(*words)
    assert code == 1 and "publication 1 is not there; `tidemark batch status` lists those that are" in said


def test_a_moment_without_its_zone_is_refused() -> None:
    code, said = tidemark("sql", "SELECT 1", "--as-of", "2026-03-01T00:00:00")
    assert code == 2 and "lacks its zone" in said


def test_status_is_for_people_and_programs() -> None:
    assert "nothing yet" in tidemark("batch", "status")[1]
    tidemark("batch", "plan", "--run-id", "r1")
    found = json.loads(tidemark("batch", "status", "--json")[1])
    assert [(run["run"], run["state"], run["cut"]) for run in found["runs"]] == [("r1", "active", 0)]
    assert found["publications"] == []


def test_wrong_usage_ends_with_2() -> None:
    assert tidemark("batch", "plan")[0] == 2
    assert tidemark("batch", "plan", "--run-id", "r", "--day", "yesterday")[0] == 2
    assert tidemark("batch", "plan", "--run-id", "r", "--rebuild", "--mode", "full")[0] == 2
    code, said = tidemark("pin", "create", "--at", "2026-01-05T10:00:00")
    assert code == 2 and "lacks its zone" in said
    assert tidemark("pin", "create", "--at", "soon")[0] == 2


def test_pins_are_listed_without_a_server() -> None:
    assert json.loads(tidemark("pin", "list", "--json")[1]) == []
    code, said = tidemark("pin", "drop", "p")
    assert code == 1 and "Thrift server" in said


def test_a_stopped_step_fails_its_run_at_once(platform_home: Path) -> None:
    tidemark("batch", "plan", "--run-id", "r1")
    program = (
        "import time\nfrom spark_jobs.cli.step import ledger_step\n"
        "with ledger_step('r1') as store:\n    print('at work', flush=True)\n    time.sleep(60)\n"
    )
    step = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert step.stdout is not None and step.stdout.readline() == "at work\n"
    began = time.monotonic()
    step.send_signal(signal.SIGTERM)
    assert step.wait(timeout=20) == 128 + signal.SIGTERM and time.monotonic() - began < 15
    store = ledger.open()
    run = store.run("r1")
    store.close()
    assert run is not None and (run.state, run.error) == ("failed", "stopped by signal 15")
