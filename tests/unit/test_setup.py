"""Environments are built from their locks, and only when they are not so already."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from infra import setup
from spark_jobs.settings import ROOT


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


def test_every_file_is_checked_against_the_locks_hashes(
    environment: setup.Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = commands(monkeypatch)
    setup.build("uv", environment)
    sync = next(command for command in ran if "sync" in command)
    assert "--require-hashes" in sync and str(environment.lock) in sync


def test_the_locks_name_no_registry_and_no_folder_of_a_machine() -> None:
    for lock in (ROOT / "infra/locks").glob("*.txt"):
        lines = lock.read_text().splitlines()
        assert not [line for line in lines if line.startswith(("--index-url", "--find-links", "--extra-index-url"))]
        assert not [line for line in lines if "file://" in line or "http://" in line]


def test_the_launcher_says_what_to_do_where_nothing_is_built(tmp_path: Path) -> None:
    launcher = shutil.copy(ROOT / "tidemark", tmp_path / "tidemark")
    said = subprocess.run([launcher], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert said.returncode == 1
    assert "make setup" in said.stderr
