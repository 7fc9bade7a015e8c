"""The reference deployment: valid, complete, and closed but for people's doors."""

import subprocess
import sys
from typing import Any
from urllib.parse import urlsplit

import yaml

from infra.embedded.programs import programs
from spark_jobs.settings import ROOT, settings

FILE = ROOT / "docker-compose.yml"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(FILE.read_text())["services"]
PARTS = {part.name for part in programs(settings())}
DOORS_OF_PEOPLE = {"thrift": ["127.0.0.1:19000:19000"], "airflow-api": ["127.0.0.1:18080:18080"]}


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


def test_only_the_doors_of_people_are_published_and_only_on_loopback():
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == DOORS_OF_PEOPLE


def test_no_secret_stands_in_the_file():
    given = [pair for service in SERVICES.values() for pair in service.get("environment", {}).items()]
    assert all(name.endswith("_FILE") for name, _ in given if "PASSWORD" in name)
    assert all(urlsplit(value).password is None for _, value in given if "://" in value)
