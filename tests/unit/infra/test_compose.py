"""The reference deployment: valid, complete, and closed but for people's doors. That it runs: tests/compose."""

import shutil
import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import yaml

from infra.embedded.programs import programs
from infra.embedded.supervisor import LOG_BACKUPS, LOG_BYTES
from spark_jobs.settings import ROOT, Settings, settings

FILE = ROOT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
PARTS = {part.name for part in programs(settings())}
DOORS_OF_PEOPLE = {
    "broker": ["kafka_port"],
    "thrift": ["thrift_port"],
    "query": ["query_port", "query_flight_port"],
    "airflow-api": ["airflow_port"],
}


def check(file: Any) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_is_valid_by_the_compose_specification():
    done = check(FILE)
    assert done.returncode == 0, done.stdout


def test_the_schema_would_refuse_a_wrong_file(tmp_path):
    wrong = tmp_path / "docker-compose.yml"
    wrong.write_text(FILE.read_text().replace("command: [broker]", "comand: [broker]"))
    assert check(wrong).returncode == 1


def test_each_part_of_the_embedded_platform_is_a_service_with_the_same_command():
    assert set(SERVICES) == PARTS | {"postgres"}
    assert all(SERVICES[name]["command"] == [name] for name in PARTS)


def test_every_lasting_service_is_asked_whether_it_is_ready():
    asked = {name: service["healthcheck"]["test"][-1] for name, service in SERVICES.items() if "healthcheck" in service}
    assert set(SERVICES) - set(asked) == {"generator"}
    assert all(asked[name] == name for name in PARTS - {"generator"})


def test_the_log_of_each_service_takes_as_much_room_as_in_the_embedded_profile():
    room = {"max-size": LOG_BYTES.lower().removesuffix("b"), "max-file": str(LOG_BACKUPS + 1)}
    assert all(service["logging"] == {"driver": "json-file", "options": room} for service in SERVICES.values())


def test_only_the_doors_of_people_are_published_and_only_on_loopback():
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert {name: [door.partition("}")[0] for door in doors] for name, doors in published.items()} == {
        name: [f"127.0.0.1:${{TIDEMARK_{port.upper()}:-{Settings.model_fields[port].default}" for port in ports]
        for name, ports in DOORS_OF_PEOPLE.items()
    }


def test_a_published_service_is_on_the_network_of_people_and_the_others_are_not():
    assert {name for name, service in SERVICES.items() if "people" in service["networks"]} == set(DOORS_OF_PEOPLE)


def test_what_listens_does_so_on_every_network_under_its_own_name():
    """Airflow's parts share one file of configuration, so they are told the same."""
    told = {name: service["environment"] for name, service in SERVICES.items()}
    names = {
        name: own["TIDEMARK_ADVERTISED_HOST"] for name, own in told.items() if own.get("TIDEMARK_HOST") == "0.0.0.0"
    }
    airflow = {name: "airflow-api" for name in PARTS if name.startswith("airflow-")}
    assert names == {"broker": "broker", "metastore": "metastore", "thrift": "thrift", "query": "query", **airflow}


def test_no_secret_stands_in_the_file():
    given = [pair for service in SERVICES.values() for pair in service.get("environment", {}).items()]
    assert all(name.endswith("_FILE") for name, _ in given if "PASSWORD" in name)
    assert all(urlsplit(value).password is None for _, value in given if "://" in str(value))


def test_the_secrets_are_made_once_by_the_command_that_the_file_names(tmp_path):
    """Run as a file, it must not take itself for the standard library's module of its name."""
    script = tmp_path / "infra/images/secrets.py"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / "infra/images/secrets.py", script)
    made = []
    for _ in range(2):
        subprocess.run([sys.executable, script], check=True)
        made.append(
            {file.name: (file.read_text(), file.stat().st_mode & 0o777) for file in tmp_path.glob(".secrets/*")}
        )
    assert made[0] == made[1]
    password = made[0]["postgres_password"][0]
    assert made[0]["pgpass"] == (f"postgres:5432:*:tidemark:{password}\n", 0o600) and len(password) == 32
