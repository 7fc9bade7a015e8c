"""Secrets of the embedded platform: made once, in private files, in no command line."""

import configparser
import json
import stat
import subprocess
from pathlib import Path

import pytest

from infra.embedded import airflow, broker, supervisor, thrift
from infra.embedded.passwords import passwords, write_private
from infra.embedded.programs import programs
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import NoPassword, Settings


def test_secrets_are_made_once_and_only_their_owner_can_read_them(here: Settings) -> None:
    made = passwords(here)
    assert passwords(here) == made
    assert stat.S_IMODE(here.secrets_file.stat().st_mode) == 0o600
    assert len(set(made.values())) == len(made) == 9


def test_a_secret_that_a_newer_version_wants_is_added_and_the_others_stay(here: Settings) -> None:
    made = passwords(here)
    write_private(here.secrets_file, json.dumps({"airflow_admin_password": made["airflow_admin_password"]}))
    again = passwords(here)
    assert again["airflow_admin_password"] == made["airflow_admin_password"]
    assert again["airflow_jwt_secret"] != made["airflow_jwt_secret"]


def test_no_command_line_and_no_supervisor_configuration_has_a_secret(here: Settings) -> None:
    shown = supervisor.configuration(here, programs(here)) + repr([(p.command, p.environment) for p in programs(here)])
    assert not any(secret in shown for secret in passwords(here).values())


def test_c1_the_thrift_server_reads_its_login_from_a_private_file(here: Settings) -> None:
    thrift.prepare(here)
    assert "hive.server2.authentication=CUSTOM" in thrift.program(here).command
    (login,) = here.run_dir.glob("*.login")
    assert stat.S_IMODE(login.stat().st_mode) == 0o600
    assert login.read_text() == f"tidemark\n{passwords(here)['thrift_password']}\n"
    assert thrift_login(here)["password"] == passwords(here)["thrift_password"]
    assert passwords(here)["thrift_password"] not in (here.run_dir / "thrift.conf").read_text()


def test_c1_a_password_of_ones_own_stands_in_for_the_generated_one(here: Settings, tmp_path: Path) -> None:
    with pytest.raises(NoPassword, match=r"tidemark up.*TIDEMARK_THRIFT_PASSWORD_FILE"):
        thrift_login(here)
    (tmp_path / "own").write_text("own secret\n")
    elsewhere = here.model_copy(update={"thrift_user": "analyst", "thrift_password_file": tmp_path / "own"})
    assert (thrift_login(elsewhere)["username"], thrift_login(elsewhere)["password"]) == ("analyst", "own secret")


def test_c1_a_secured_broker_lets_nobody_in_unasked_not_even_at_its_controller(
    here: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def format_log(command: list[str], stdout: int, check: bool) -> None:
        assert stdout == subprocess.DEVNULL, "Kafka's tool prints the keys of the users"
        seen.extend([*command, Path(command[-1].removeprefix("@")).read_text()])

    monkeypatch.setattr(subprocess, "run", format_log)
    broker.prepare(here.model_copy(update={"kafka_security_protocol": "SASL_PLAINTEXT"}))
    file = broker.properties_file(here)
    text, secret = file.read_text(), passwords(here)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "SASL_PLAINTEXT:SASL_PLAINTEXT,OUTSIDE:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT\n" in text
    assert "StandardAuthorizer" in text
    assert "super.users=User:controller;User:tidemark\n" in text
    assert f"name=tidemark,password={secret['kafka_password']}" in seen[-1]
    assert secret["kafka_password"] not in " ".join(seen[:-1]), "in a file, on no command line"
    assert list(here.kafka_dir.iterdir()) == [file], "and that file is gone"
    with pytest.raises(SystemExit, match="SASL_PLAINTEXT with SCRAM-SHA-512"):
        broker.prepare(here.model_copy(update={"kafka_security_protocol": "SSL"}))


def test_airflows_configuration_and_login_are_private_and_survive_a_percent_sign(
    here: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(airflow, "_migrate", lambda settings: None)
    airflow.prepare(here)
    files = [here.airflow_dir / name for name in ("airflow.cfg", "passwords.json", "connections.json")]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
    conf = configparser.ConfigParser()
    conf.read(files[0])
    assert conf["logging"]["base_log_folder"] == str(here.airflow_dir / "logs")
    assert json.loads(files[1].read_text()) == {"admin": passwords(here)["airflow_admin_password"]}
