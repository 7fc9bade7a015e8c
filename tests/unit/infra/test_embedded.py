"""The embedded platform's configuration: bound to one address, restarted, secret where it must be."""

import configparser
import os
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from infra.embedded import airflow, broker, lifecycle, report, supervisor, thrift
from infra.embedded.airflow_connections import connections
from infra.embedded.metastore import hive_properties
from infra.embedded.passwords import passwords
from infra.embedded.program import NotReady, Program, nothing
from infra.embedded.programs import program, programs
from spark_jobs.orchestration.interface import MAIL_CONNECTION
from spark_jobs.settings import Settings


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
