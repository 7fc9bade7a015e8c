"""Class archives are made of these jars, or not at all."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra import archives, setup
from spark_jobs.storage.java import RECORD, archived_classes


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a jar, and the archives' place in it."""
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka/some.jar").write_bytes(b"1")
    monkeypatch.setattr(archives, "_jars", lambda: tmp_path.glob("*/*.jar"))
    monkeypatch.setattr(archives, "ARCHIVES", tmp_path / "archives")
    monkeypatch.setattr("spark_jobs.storage.java.ARCHIVES", tmp_path / "archives")
    return tmp_path


def recorder(monkeypatch: pytest.MonkeyPatch, code: int) -> list[int]:
    """Stands in for the recorder alone, and ends with the code; one entry a call."""
    calls: list[int] = []
    real = subprocess.run

    def run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
        if command[-1] != "infra.embedded.recording":
            return real(command, **options)
        calls.append(code)
        (Path(options["env"][RECORD]) / "kafka.jsa").write_bytes(b"classes")
        return subprocess.CompletedProcess(command, code, "", "no broker")

    monkeypatch.setattr(archives.subprocess, "run", run)
    return calls


def test_archives_are_made_once_and_anew_with_another_jar(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorder(monkeypatch, 0)
    assert (archives.sync(), archives.sync(), len(calls)) == (True, False, 1)
    (here / "kafka/some.jar").write_bytes(b"22")
    assert (archives.sync(), archives.sync(), len(calls)) == (True, False, 2)


def test_what_a_failed_recording_wrote_is_not_used_and_setup_goes_on(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorder(monkeypatch, 1)
    setup.archive_classes()
    assert "no broker" in capsys.readouterr().err
    assert archived_classes("kafka") == ()


def test_a_jvm_is_given_an_archive_only_where_there_is_one(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder(monkeypatch, 0)
    archives.sync()
    assert archived_classes("kafka")[-1] == f"-XX:SharedArchiveFile={here}/archives/kafka.jsa"
    assert archived_classes("metastore") == ()
