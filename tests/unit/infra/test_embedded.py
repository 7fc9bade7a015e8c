"""The embedded platform's configuration: bound to one address, restarted, secret where it must be."""

import configparser
import json
import os
import shlex
import stat
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from infra.embedded import airflow, broker, leftovers, lifecycle, report, supervisor, thrift
from infra.embedded.airflow_connections import connections
from infra.embedded.launch import environment
from infra.embedded.metastore import hive_properties
from infra.embedded.passwords import passwords, write_private
from infra.embedded.program import NotReady, Program, nothing
from infra.embedded.programs import program, programs
from spark_jobs.orchestration.interface import MAIL_CONNECTION
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import NoPassword, Settings


@pytest.fixture
def here(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "a % home")


def parsed(text: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    return parser


def test_every_part_is_restarted_and_leaves_no_child(here: Settings) -> None:
    conf = parsed(supervisor.configuration(here, programs(here)))
    parts = [name for name in conf.sections() if name.startswith("program:")]
    assert len(parts) == len(programs(here)) == 10
    for part in parts:
        assert conf[part]["autorestart"] == conf[part]["stopasgroup"] == conf[part]["killasgroup"] == "true"


def test_the_supervisor_has_no_network_door_and_its_socket_is_private(here: Settings) -> None:
    conf = parsed(supervisor.configuration(here, programs(here)))
    assert "inet_http_server" not in conf
    assert conf["unix_http_server"]["chmod"] == "0700"


def test_a_percent_sign_in_the_home_survives_the_supervisors_expansion(here: Settings) -> None:
    conf = parsed(supervisor.configuration(here, programs(here)))
    assert conf["supervisord"]["pidfile"] % {} == str(here.run_dir / "supervisord.pid")


def test_a_home_too_deep_for_a_unix_socket_is_refused_by_name(tmp_path: Path) -> None:
    deep = Settings(home=tmp_path / ("x" * 100))
    with pytest.raises(supervisor.SupervisorError, match="TIDEMARK_HOME"):
        supervisor.start(deep, [])


def test_every_need_stands_before_the_part_that_has_it(here: Settings) -> None:
    seen: set[str] = set()
    for part in programs(here):
        assert seen.issuperset(part.needs), part.name
        seen.add(part.name)


def test_a_part_brings_what_it_needs_and_nothing_else(here: Settings) -> None:
    every = {part.name: part for part in programs(here)}
    assert list(lifecycle._with_needs(every, ["speed"])) == ["broker", "metastore", "thrift", "speed"]
    with pytest.raises(lifecycle.PlatformError, match="no part called 'spede'"):
        lifecycle._with_needs(every, ["spede"])
    with pytest.raises(KeyError, match="no part called 'spede'"):
        program(here, "spede")


def test_every_listener_is_bound_to_the_one_address(here: Settings) -> None:
    kafka = broker.server_properties(here)
    assert kafka["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert kafka["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert "hive.server2.thrift.bind.host=127.0.0.1" in thrift.program(here).command
    properties = thrift.thrift_properties(here)
    assert properties["spark.driver.bindAddress"] == properties["spark.driver.host"] == "127.0.0.1"
    assert properties["spark.ui.enabled"] == "false"
    assert airflow.configuration(here, passwords(here))["api"]["host"] == "127.0.0.1"
    assert all("--skip-serve-logs" in airflow.PARTS[f"airflow-{part}"][0] for part in ("scheduler", "triggerer"))


def test_what_is_bound_to_every_address_is_reached_by_its_advertised_name(tmp_path: Path) -> None:
    """In a container a part has an address on each of its networks, and browsers know none of its names."""
    here = Settings(
        home=tmp_path,
        host="0.0.0.0",
        advertised_host="box",
        kafka_outside="127.0.0.1:9",
        airflow_public_url="https://x",
    )
    kafka = broker.server_properties(here)
    assert kafka["listeners"] == "PLAINTEXT://0.0.0.0:19092,OUTSIDE://0.0.0.0:9,CONTROLLER://127.0.0.1:19093"
    assert kafka["advertised.listeners"] == "PLAINTEXT://box:19092,OUTSIDE://127.0.0.1:9"
    assert "hive.server2.thrift.bind.host=0.0.0.0" in thrift.program(here).command
    assert (here.kafka, here.metastore, here.thrift) == ("box:19092", "thrift://box:19083", "box")
    conf = airflow.configuration(here, passwords(here))
    assert (conf["api"]["host"], conf["api"]["base_url"]) == ("0.0.0.0", "https://x")
    assert conf["core"]["execution_api_server_url"] == "http://box:18080/execution/"


def test_every_address_is_no_name_to_reach_a_part_by(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="set TIDEMARK_ADVERTISED_HOST"):
        Settings(home=tmp_path, host="0.0.0.0")


def test_the_broker_unpacks_native_code_below_home_and_not_in_tmp(here: Settings) -> None:
    assert f"-Djava.io.tmpdir={here.tmp_dir}" in broker.program(here).command


def test_java_reads_a_home_with_letters_outside_ascii_as_it_is_called(tmp_path: Path) -> None:
    here = Settings(home=tmp_path / "jürgen \\ 🌊")
    broker.write_properties(here, {"log.dirs": str(here.kafka_dir)})
    written = broker.properties_file(here).read_bytes().decode("ascii")
    assert written == f"log.dirs={tmp_path}/j\\u00fcrgen \\\\ \\ud83c\\udf0a/kafka\n"


def test_a_home_with_a_blank_a_quote_and_a_backslash_reaches_sparks_jvm_whole(tmp_path: Path) -> None:
    """Spark's launcher takes Java's options apart at blanks, as a shell does, after it has read the file's escapes."""
    here = Settings(home=tmp_path / "it's a \\ home")
    here.run_dir.mkdir(parents=True)
    thrift.prepare(here)
    lines = (here.run_dir / "thrift.conf").read_text(encoding="utf-8").replace("\\\\", "\\").splitlines()
    (line,) = (line for line in lines if line.startswith("spark.driver.extraJavaOptions "))
    options = {option.partition("=")[0]: option.partition("=")[2] for option in shlex.split(line)}
    assert options["-Djava.io.tmpdir"] == options["-Dderby.system.home"] == str(here.tmp_dir)
    assert options["-Dhadoop.token.files"] == str(here.own_metastore_token)
    assert options["-Dtidemark.login"] == str(here.run_dir / "thrift.login")
    assert f"spark.local.dir {here.tmp_dir}" in lines


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


def test_status_asks_parts_in_other_containers_over_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent() -> None:
        raise NotReady("nobody there")

    parts = [
        Program("a", ("true",), nothing),
        Program("b", ("true",), silent),
        Program("c", ("true",), nothing, on_demand=True),
    ]
    monkeypatch.setattr(report, "programs", lambda settings: parts)
    now = report.status(Settings(home=tmp_path, supervisor="compose"))
    assert [(part.name, part.state, part.said) for part in now.parts] == [
        ("a", "RUNNING", ""),
        ("b", "SILENT", "nobody there"),
    ]
    assert not now.ready


def test_state_stays_below_home(here: Settings) -> None:
    assert f"databaseName={here.home}/" in hive_properties(here)["javax.jdo.option.ConnectionURL"]
    assert broker.server_properties(here)["log.dirs"].startswith(str(here.home))
    assert thrift.thrift_properties(here)["spark.local.dir"].startswith(str(here.home))


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


def test_old_task_logs_go_with_the_folders_that_they_leave_empty(tmp_path: Path) -> None:
    old, young = (tmp_path / f"dag_id=a/run_id={day}/task_id=t/attempt=1.log" for day in ("old", "young"))
    gone = tmp_path / "dag_id=b/run_id=x/task_id=t"  # empty since long ago
    begun = tmp_path / "dag_id=c/run_id=x"
    for folder in (old.parent, young.parent, gone, begun):
        folder.mkdir(parents=True)
    for file in (old, young):
        file.touch()
    for path in (old, gone, gone.parent, gone.parent.parent):
        os.utime(path, (0, 0))
    assert airflow.remove_logs(tmp_path, datetime.now(UTC) - timedelta(days=1)) == 1
    kept = {begun, begun.parent, young, *list(young.parents)[:3]}
    assert set(tmp_path.rglob("*")) == kept


def test_a_mail_server_is_spoken_to_encrypted_unless_its_scheme_says_plain(here: Settings) -> None:
    def mail(server: str) -> dict[str, Any]:
        told = here.model_copy(update={"alarms_mail_to": "ada@example.org", "alarms_smtp": server})
        return connections(told)[MAIL_CONNECTION]

    said = mail("smtp://us%40er@mail.example.org:587")
    assert (said["host"], said["port"], said["login"]) == ("mail.example.org", 587, "us@er")
    assert said["extra"] == {"disable_ssl": True, "disable_tls": False, "from_email": "ada@example.org"}
    assert not mail("smtps://mail.example.org:465")["extra"]["disable_ssl"]
    with pytest.raises(ValueError, match="TIDEMARK_ALARMS_SMTP"):
        mail("mail.example.org")


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


@pytest.fixture
def orphan(here: Settings) -> Iterator[psutil.Process]:
    """A process of the part `x` in a session of its own, as Airflow's tasks are."""
    command = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)", str(uuid.uuid4())]
    mark = {leftovers.MARK: "x", "TIDEMARK_HOME": str(here.home)}
    started = subprocess.Popen(command, env={**os.environ, **mark}, start_new_session=True, stdout=subprocess.PIPE)
    assert started.stdout and started.stdout.readline()
    yield psutil.Process(started.pid)
    started.kill()
    started.wait()


def test_what_outlives_its_part_is_found_by_its_mark_and_ended(here: Settings, orphan: psutil.Process) -> None:
    assert [found.pid for found in leftovers.marked(here.home, "x")] == [orphan.pid]
    assert leftovers.end(here.home, "x")[0].startswith(f"{orphan.pid} ")
    assert list(leftovers.marked(here.home)) == []


def test_other_parts_and_other_homes_are_left_alone(here: Settings, orphan: psutil.Process) -> None:
    assert leftovers.end(here.home, "y") == []
    assert leftovers.end(here.home / "other") == []
    assert orphan.is_running() and orphan.status() != psutil.STATUS_ZOMBIE


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
