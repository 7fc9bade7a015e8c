"""The environment of a part: its own, and nothing of its user's."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from infra.embedded import airflow, leftovers, lifecycle, supervisor
from infra.embedded.launch import environment
from infra.embedded.program import Program, nothing
from spark_jobs.settings import Settings


@pytest.mark.parametrize(
    ("inherited", "spoken"),
    [
        ({}, "C.UTF-8"),
        ({"LC_ALL": "C", "LANG": "de_AT.UTF-8"}, "C.UTF-8"),
        ({"LANG": "de_AT.ISO-8859-1"}, "C.UTF-8"),
        ({"LC_ALL": "", "LANG": "de_AT.utf8"}, ""),
        ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, None),
    ],
)
def test_a_part_has_a_locale_in_which_paths_are_utf_8(
    here: Settings, inherited: dict[str, str], spoken: str | None
) -> None:
    assert environment(here, Program("x", ("true",), ready=nothing), inherited).get("LC_ALL") == spoken


@pytest.mark.parametrize(
    ("act", "command"),
    [
        (lambda here: lifecycle.up(here, print), "up --wait"),
        (lambda here: lifecycle.down(here, print), "down"),
        (lambda here: lifecycle.restart(here, "speed", print), "restart speed"),
        (lambda here: lifecycle.reset(here, print), "down --volumes"),
    ],
)
def test_where_parts_are_containers_their_engines_command_is_named(
    tmp_path: Path, act: Callable[[Settings], object], command: str
) -> None:
    with pytest.raises(supervisor.SupervisorError, match=f"`docker compose {command}`"):
        act(Settings(home=tmp_path / "home", supervisor="compose"))
    assert not (tmp_path / "home").exists()


def test_a_parts_environment_carries_its_mark_and_no_proxy_to_its_neighbours(here: Settings) -> None:
    part = Program("x", ("true",), ready=nothing, environment={"OWN": "1"})
    seen = environment(here, part, {"NO_PROXY": "example.org", "HOME": "/root"})
    assert (seen["OWN"], seen["HOME"]) == ("1", "/root")
    assert (seen[leftovers.MARK], seen["TIDEMARK_HOME"]) == ("x", str(here.home))
    assert seen["NO_PROXY"] == "example.org,127.0.0.1,localhost"
    assert seen["no_proxy"] == "127.0.0.1,localhost"


@pytest.mark.parametrize("foreign", ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "SPARK_CONF_DIR", "HADOOP_CONF_DIR"])
def test_a_part_is_configured_by_nothing_of_its_users_environment(here: Settings, foreign: str) -> None:
    part = Program("x", ("true",), ready=nothing)
    assert foreign not in environment(here, part, {foreign: "another"})


def test_airflow_finds_the_interface_with_the_pipeline_without_its_environment(here: Settings, tmp_path: Path) -> None:
    code = "from spark_jobs.orchestration import interface; print(interface.SPEED_SILENT)"
    bare = [sys.executable, "-S", "-c", code]  # no installed package, neither theirs nor ours
    said = subprocess.run(bare, cwd=tmp_path, env=airflow.environment(here), capture_output=True, text=True, check=True)
    assert said.stdout == "4\n"


def test_the_supervisor_is_given_the_folders_wherever_its_parts_work(
    here: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, str] = {}

    def refuse(command: list[str], env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        given.update(env)
        return subprocess.CompletedProcess(command, 1, "", "")

    monkeypatch.setattr(subprocess, "run", refuse)
    with pytest.raises(supervisor.SupervisorError, match="does not start"):
        supervisor.start(Settings(home=here.home, project=Path("shop")), [])
    assert given["TIDEMARK_HOME"] == str(here.home)
    assert (given["TIDEMARK_PROJECT"], given["TIDEMARK_VIEWS_FOLDER"]) == (f"{tmp_path}/shop", f"{tmp_path}/shop/views")
