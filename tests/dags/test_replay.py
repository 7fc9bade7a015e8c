"""`replay`: what the form becomes, who is asked, and what their answer does; both ends where the command takes part."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, ParamValidationError, TaskAwaitingInput
from conftest import DAGS, ROOT, context
from tidemark_airflow import replay_form, replay_steps
from tidemark_airflow.run_id import run_id_of

from spark_jobs.orchestration.interface import COMMAND_VARIABLE, NOTHING_DIFFERS, REPLAY

REPLAYED = run_id_of("manual__1")


@pytest.fixture(scope="module")
def replay() -> DAG:
    return DagBag(DAGS).dags[REPLAY]


@pytest.fixture
def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real command, over a platform of its own on which nothing has landed."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    monkeypatch.delenv(COMMAND_VARIABLE, raising=False)


def shown(run_id: str = REPLAYED) -> Any:
    return json.loads(subprocess.run([ROOT / "tidemark", "replay", "show", run_id, "--json"], check=True,
                                     capture_output=True, text=True).stdout)  # fmt: skip


def test_the_form_begins_as_a_dry_run_over_everything_and_wants_a_reason(replay: DAG) -> None:
    assert replay.params["dry_run"] is True and replay.params["origin"] == "raw"
    with pytest.raises(ParamValidationError):
        replay.params.validate()
    assert {"orders_by_day", "sessions"} <= {*replay_form.VIEWS}
    assert {"order_placed", "page_viewed"} <= {*replay_form.EVENT_TYPES}


def test_the_command_takes_what_the_form_gives_and_a_dry_run_ends_there(replay: DAG, real: None) -> None:
    form = {"origin": "facts", "views": ["orders_by_day"], "from_day": "2026-03-01", "to_day": "2026-03-30"}
    replay.get_task("preview").execute(context(**form))
    found = shown()
    assert (found["asked_by"], found["reason"], found["state"]) == ("ada", "a test", "planned")
    assert found["wanted"]["views"] == ["orders_by_day"] and len(found["wanted"]["days"]) == 30
    with pytest.raises(AirflowSkipException, match="a dry run ends with its preview"):
        replay.get_task("plan").execute(context(**form))
    replay.get_task("plan").execute(context(**form, dry_run=False))
    assert shown()["state"] == "under way (plan)"


def test_what_is_in_quarantine_is_chosen_by_reason(replay: DAG, real: None) -> None:
    with pytest.raises(AirflowException, match="exit code 1"):
        replay.get_task("preview").execute(context(quarantined=True, because=["not_json", "empty_value"]))
    asked = [*replay_form.options(context(quarantined=True, because=["not_json"])["params"])]
    assert asked[-2:] == ["--quarantined", "--because=not_json"]


def test_a_value_of_the_form_is_never_an_option(replay: DAG, real: None) -> None:
    replay.get_task("preview").execute(context(origin="facts", reason="--view=orders_by_day; $(reboot) {{ 1 + 1 }}"))
    found = shown()
    assert found["reason"] == "--view=orders_by_day; $(reboot) {{ 1 + 1 }}" and found["wanted"]["views"] == []


def test_a_moment_of_the_form_is_one_of_the_command(replay: DAG, real: None) -> None:
    """Nothing landed then, which is another complaint than that the moment could not be read."""
    preview, heard = replay.get_task("preview"), list[str]()
    preview.hear = heard.append
    with pytest.raises(AirflowException, match="exit code 1"):
        preview.execute(context(from_time="2026-03-01T00:00:00Z", to_time="2026-03-02T00:00:00+01:00"))
    assert "there is nothing in that range" in heard[-1]


def test_where_nothing_differs_nobody_is_asked(replay: DAG) -> None:
    assert replay.get_task("agree").execute(context(pulled=[f"{NOTHING_DIFFERS}: every answer is the same"])) is None
    replay.get_task("answer").execute(context())


def test_who_has_to_agree_sees_what_differs_as_text(replay: DAG, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **told: asked.update(told)
    )
    agree = replay.get_task("agree")
    with pytest.raises(TaskAwaitingInput):
        lines = [
            "orders_by_day: 1 rows differ",
            "  name={{ 1 + 1 }} <b> ``[x](y)",
            "page: file:///x/data_docs/replays/r/index.html",
        ]
        agree.execute(context(pulled=lines))
    reason, _, view, row, page = asked["body"].split("\n\n")
    assert (reason, view) == ("a test", "` orders_by_day: 1 rows differ `")
    assert row == "- ``` name={{ 1 + 1 }} <b> ``[x](y) ```", "a row is data, whatever it looks like"
    assert page.startswith("[All rows that differ](") and page.endswith("/replays/r/index.html)")
    assert asked["options"] == ["Approve", "Reject"] and tuple(agree.template_fields) == ()


@pytest.mark.parametrize(
    ("chosen", "words"), [("Approve", ["approve", REPLAYED, "--by=bob"]), ("Reject", ["cancel", REPLAYED, "--by=bob"])]
)
def test_the_answer_is_recorded_under_the_name_of_who_gave_it(
    replay: DAG, tidemark: Callable[[str], Path], chosen: str, words: list[str]
) -> None:
    folder = tidemark('printf "%s\\n" "$@" > given')
    answer = {"chosen_options": [chosen], "responded_by_user": {"id": "7", "name": "bob"}}
    step = replay.get_task("answer")
    if chosen == "Reject":
        with pytest.raises(AirflowSkipException, match="it was rejected"):
            step.execute(context(pulled=answer))
    else:
        step.execute(context(pulled=answer))
    assert (folder / "given").read_text().splitlines() == ["replay", *words]


def test_a_rejected_replay_is_cancelled_by_the_command(replay: DAG, real: None) -> None:
    replay.get_task("preview").execute(context())
    with pytest.raises(AirflowSkipException):
        replay.get_task("answer").execute(
            context(pulled={"chosen_options": ["Reject"], "responded_by_user": {"id": "7", "name": "bob"}})
        )
    assert (shown()["state"], shown()["cancelled_by"]) == ("cancelled", "bob")


def test_what_compare_says_goes_to_whoever_has_to_agree(replay: DAG, tidemark: Callable[[str], Path]) -> None:
    tidemark("echo 'orders_by_day: 1 rows differ'; echo page: file:///x/data_docs/replays/r/index.html")
    compare = replay.get_task("compare")
    assert compare.execute(context())[0] == "orders_by_day: 1 rows differ"
    assert compare.page == "replays/r/index.html"
    assert compare.task_id == replay_steps.COMPARE and replay.get_task("agree").task_id == replay_steps.AGREE
