"""Settings that would do harm, or mean another thing to another process, are refused by name or made the same."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from spark_jobs.cli import main
from spark_jobs.settings import FILES, FOLDERS, ROOT, Settings, settings


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(f"TIDEMARK_{name.upper()}", raising=False)
    wanted = Settings()
    for name in Settings.model_fields:
        monkeypatch.setenv(f"TIDEMARK_{name.upper()}", "")
    assert Settings() == wanted


@pytest.mark.parametrize("home", [ROOT, ROOT.parent, *(getattr(Settings(), name) for name in FOLDERS)])
def test_a_home_in_which_a_reset_would_meet_the_project_is_refused(home: Path) -> None:
    with pytest.raises(ValidationError, match=f"TIDEMARK_HOME={home} would mix the state with "):
        Settings(home=home)


@pytest.mark.parametrize(
    ("home", "dbt", "met"),
    [(".", "models", "project"), ("state", "state", "dbt_folder"), ("state", "state/dbt", "dbt_folder")],
)
def test_so_is_one_of_a_project_elsewhere(tmp_path: Path, home: str, dbt: str, met: str) -> None:
    Settings(project=tmp_path)
    with pytest.raises(ValidationError, match=f"with {met}: name another folder"):
        Settings(home=tmp_path / home, project=tmp_path, dbt_folder=tmp_path / dbt)


@pytest.mark.parametrize("name", FILES)
def test_a_file_means_the_same_place_to_every_process(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "someone"))
    for given, meant in (("own", "own"), ("~/own", "someone/own")):
        monkeypatch.setenv(f"TIDEMARK_{name.upper()}", given)
        assert getattr(Settings(), name) == tmp_path / meant


def test_the_lines_of_settings_are_read_again_by_a_shell(platform_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "own # file"
    given = {"TIDEMARK_KAFKA_PASSWORD_FILE": str(file), "TIDEMARK_REPLAY_HOURS": "22-6"}
    shown = CliRunner().invoke(main, ["settings"], env=given).output
    (tmp_path / "env").write_text(shown)
    read = ["sh", "-c", f"set -a; . '{tmp_path}/env'; env -0"]
    known = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    lines = subprocess.run(read, env=known, capture_output=True, text=True, check=True).stdout.split("\0")
    again = dict(line.split("=", 1) for line in lines if line.startswith("TIDEMARK_"))
    with pytest.MonkeyPatch.context() as other:
        for name, value in again.items():
            other.setenv(name, value)
        assert Settings() == settings()
        assert (Settings().kafka_password_file, Settings().replay_hours) == (file, "22-6")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cores", "0"),
        ("airflow_port", "99999"),
        ("kafka_port", "0"),
        ("airflow_kept_days", "-1"),
        ("publications_kept_days", "-1"),
        ("history_days", "-1"),
        ("lag_alarm_seconds", "nan"),
        ("disk_alarm_share", "nan"),
        ("disk_alarm_share", "5"),
        ("heartbeat_seconds", "0"),
        ("task_hours", "inf"),
        ("span_seconds", "0"),
        ("schedule_timezone", "Europe/Viena"),
        ("schedule_timezone", "Europe"),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_name(
    name: str, value: str, platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"TIDEMARK_{name.upper()}", value)
    settings.cache_clear()
    done = CliRunner().invoke(main, ["settings"])
    assert done.exit_code == 2 and f"TIDEMARK_{name.upper()}: " in done.output


def test_mail_without_a_server_is_refused(platform_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_ALARMS_MAIL_TO", "ada@example.org")
    settings.cache_clear()
    done = CliRunner().invoke(main, ["settings"])
    assert done.exit_code == 2 and "TIDEMARK_ALARMS_SMTP no server to do it" in done.output
    monkeypatch.setenv("TIDEMARK_ALARMS_SMTP", "smtp://localhost:25")
    assert CliRunner().invoke(main, ["settings"]).exit_code == 0
