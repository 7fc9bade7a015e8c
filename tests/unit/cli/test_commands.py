"""The command line: every command is there, describes itself, and loads no Spark."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from spark_jobs.cli import main
from spark_jobs.cli.commands import OF_THE_TOWN, SECTIONS
from spark_jobs.settings import Settings, settings

COMMANDS = {name: entry.line for section in (SECTIONS | OF_THE_TOWN).values() for name, entry in section.items()}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_exists_and_says_what_it_does(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.get_short_help_str()


def test_help_has_a_line_for_every_command_and_imports_none() -> None:
    code = "import sys, spark_jobs.cli as c; c.main(['-h'], standalone_mode=False); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    shown, modules = done.stdout.rsplit("\n", 2)[:2]
    lines = [line.split(maxsplit=1) for line in shown.splitlines()]
    assert all([name, line] in lines for name, line in COMMANDS.items())
    assert max(map(len, shown.splitlines())) < 80
    assert "spark_jobs.cli.commands" in modules and "spark_jobs.cli.step" not in modules and "pyarrow" not in modules


def test_an_unknown_command_is_wrong_usage_and_what_is_like_it_is_named() -> None:
    assert CliRunner().invoke(main, ["nonsense"]).exit_code == 2
    done = CliRunner().invoke(main, ["statu"])
    assert done.exit_code == 2 and "'status'" in done.output


def test_status_starts_without_spark(tmp_path: Path) -> None:
    code = "import sys, spark_jobs.cli.platform; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_setting_has_a_meaning_and_a_variable() -> None:
    lines = CliRunner().invoke(main, ["settings"]).output.splitlines()
    assert len(lines) == len(Settings.model_fields)
    for line, name in zip(lines, Settings.model_fields, strict=True):
        assert line.startswith(f"TIDEMARK_{name.upper()}=")
        assert (Settings.model_fields[name].description or "").endswith(".")


def test_a_setting_that_says_nothing_is_told_by_its_variable(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMARK_BATCH_SCHEDULE", "every hour")
    settings.cache_clear()
    done = CliRunner().invoke(main, ["settings"])
    assert done.exit_code == 2
    assert "TIDEMARK_BATCH_SCHEDULE: Value error, 'every hour' is no cron text of five fields" in done.output


def test_settings_shows_what_the_environment_says(platform_home: Path) -> None:
    shown = json.loads(CliRunner().invoke(main, ["settings", "--json"]).output)
    assert shown["TIDEMARK_HOME"] == str(platform_home)
    assert f"TIDEMARK_HOME={platform_home}  # " in CliRunner().invoke(main, ["settings"]).output


def test_status_of_a_platform_that_is_down_is_exit_code_1(platform_home: Path) -> None:
    result = CliRunner().invoke(main, ["status", "--json"])
    now = json.loads(result.output)
    assert result.exit_code == 1
    assert not now["ready"] and not now["supervisor"]
    assert {part["state"] for part in now["parts"]} == {"STOPPED"}
    assert "broker" in CliRunner().invoke(main, ["status"]).output


def test_logs_of_an_unknown_part_name_those_there_are(platform_home: Path) -> None:
    (platform_home / "logs").mkdir()
    (platform_home / "logs/broker.log").write_text("one\ntwo\nthree\n")
    assert CliRunner().invoke(main, ["logs", "broker", "-n", "2"]).output == "two\nthree\n"
    result = CliRunner().invoke(main, ["logs", "nobody"])
    assert result.exit_code == 1 and "broker" in result.output


def test_down_and_restart_of_a_platform_that_is_down_say_so(platform_home: Path) -> None:
    assert CliRunner().invoke(main, ["down"]).exit_code == 0
    result = CliRunner().invoke(main, ["restart", "speed"])
    assert result.exit_code == 1 and "is down" in result.output


def test_reset_asks_and_removes_the_state_and_nothing_else(platform_home: Path) -> None:
    for name in ("warehouse", "kafka", "notes"):
        (platform_home / name).mkdir()
    (platform_home / "ledger.db").touch()
    refused = CliRunner().invoke(main, ["reset"], input="n\n")
    assert refused.exit_code == 1 and (platform_home / "warehouse").exists()
    assert CliRunner().invoke(main, ["reset", "--yes"]).exit_code == 0
    assert [path.name for path in platform_home.iterdir() if path.name != "run"] == ["notes"]
