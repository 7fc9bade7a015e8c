"""What the machine lacks is named, with the command that installs it."""

import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from infra import jars, preflight, setup
from infra.embedded import lifecycle, supervisor
from infra.embedded.programs import programs
from spark_jobs.settings import Settings
from spark_jobs.storage import java


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_taken_port_is_named_with_its_setting_and_its_holder(tmp_path: Path, taken_port: int) -> None:
    (finding,) = preflight.check_running(tmp_path, "127.0.0.1", {"thrift_port": taken_port})
    assert f"Port {taken_port}" in finding.what
    assert "held by" in finding.what
    assert "TIDEMARK_THRIFT_PORT" in finding.remedy


def test_a_free_port_is_no_finding(tmp_path: Path, taken_port: int) -> None:
    assert preflight.check_running(tmp_path, "127.0.0.1", {"thrift_port": 0}) == []


@pytest.mark.parametrize("system", ["debian", "fedora", "macos"])
def test_a_missing_java_is_named_with_the_command_of_this_system_first(
    system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java, "candidates", lambda: iter([tmp_path / "bin/java"]))
    monkeypatch.setattr(preflight, "family", lambda: system)
    java.find_java.cache_clear()
    (finding,) = preflight._java()
    java.find_java.cache_clear()
    assert "Java 17" in finding.what
    assert finding.remedy.startswith(f"Install it: `{preflight.INSTALL['java'][system]}`")
    assert all(command in finding.remedy for command in preflight.INSTALL["java"].values())


def test_an_old_java_is_named_by_its_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "bin/java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setattr(java, "candidates", lambda: iter([old]))
    java.find_java.cache_clear()
    with pytest.raises(java.NoJava, match="is Java 11"):
        java.find_java()
    java.find_java.cache_clear()


def test_an_old_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "PYTHON", (99, 0))
    assert "3.11" in preflight._python()[0].what


def test_too_little_disk_is_named_with_its_folder(tmp_path: Path) -> None:
    (finding,) = preflight._disk(tmp_path / "not/yet/there", 10**9)
    assert str(tmp_path) in finding.what


def test_little_disk_stops_a_first_start_and_is_a_note_to_a_platform_that_ran_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = Settings(home=tmp_path)
    here.run_dir.mkdir()
    monkeypatch.setattr(preflight, "RUN_DISK_GB", 10**9)
    monkeypatch.setattr(supervisor, "start", lambda settings, every: None)
    with pytest.raises(lifecycle.PlatformError, match="GB are needed"):
        lifecycle._start_supervisor(here, [])
    (here.run_dir / "settings.json").write_text("{}")
    lifecycle._start_supervisor(here, [])
    assert re.match(r"note: .* GB are needed", capsys.readouterr().err)


def test_room_for_environments_is_asked_for_only_where_one_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "SETUP_DISK_GB", 10**9)
    monkeypatch.setattr(jars, "PLATFORM", replace(jars.PLATFORM, target=Path("/")))
    for is_built in (True, False):
        monkeypatch.setattr(setup.Environment, "built", lambda environment, answer=is_built: answer)
        lacks = [finding.what for finding in setup.missing(setup.ENVIRONMENTS) if "GB are needed" in finding.what]
        assert bool(lacks) is not is_built


def test_little_memory_is_a_note_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "MEMORY_GB", 10**6)
    (finding,) = preflight._memory()
    assert not finding.blocking


def test_every_port_setting_belongs_to_a_part() -> None:
    settings = Settings()
    of_parts = {port for part in programs(settings) for port in part.ports}
    assert of_parts == {name for name in Settings.model_fields if name.endswith("_port")}


def test_a_missing_postgresql_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "postgresql_programs", lambda: None)
    (finding,) = preflight.check_change_data()
    assert "PostgreSQL" in finding.what
    assert all(command in finding.remedy for command in preflight.INSTALL["postgresql"].values())
