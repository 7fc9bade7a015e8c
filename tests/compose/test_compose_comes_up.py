"""docker-compose.yml as a person runs it: images built, every service up, used from outside, killed, verified.

`make test-compose`. The tests build on one another in order.
"""

import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewTopic

from infra.embedded.shadow import free_ports
from spark_jobs.settings import ROOT, Settings
from tests.compose import engine, images
from tests.compose.engine import LASTING, SERVICES, Deployment
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.compose, pytest.mark.timeout(5400)]

DOORS = {"broker": "kafka_port", "thrift": "thrift_port", "query": "query_port", "airflow-api": "airflow_port"}
TIDEMARK = [name for name, service in SERVICES.items() if service["image"] == "tidemark"]
SECRETS = ROOT / ".secrets"
STORE = 4711


@pytest.fixture(scope="module")
def deployment() -> Iterator[Deployment]:
    """The compose file's services, from nothing, on free ports and under a name of their own."""
    found = engine.find()
    images.build(found)
    subprocess.run([sys.executable, "infra/images/secrets.py"], cwd=ROOT, check=True)
    ports = {
        f"TIDEMARK_{name.upper()}": port for name, port in zip(DOORS.values(), free_ports(len(DOORS)), strict=True)
    }
    running = Deployment(found, f"tidemark-test-{os.getpid()}", ports)
    try:
        running.up()
        yield running
    finally:
        running.down()


@pytest.fixture(scope="module")
def outside(deployment: Deployment) -> Iterator[Platform]:
    """A person on the machine that holds the containers: the published doors, and the passwords they were given."""
    with tempfile.TemporaryDirectory() as folder:
        here = Settings(
            home=Path(folder),
            **{name.removeprefix("TIDEMARK_").lower(): port for name, port in deployment.ports.items()},
        )
        here.secrets_file.write_bytes(deployment.exec("airflow-api", "cat", "/var/lib/tidemark/secrets.json").stdout)
        yield Platform(here)


def order(**changes: Any) -> str:
    example = json.loads((ROOT / "schemas/events/order_placed.v1.json").read_text())["examples"][0]
    new = {"event_id": str(uuid.uuid4()), "order_id": str(uuid.uuid4()), "store_id": STORE}
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return json.dumps({**example, **new, "occurred_at": moment, **changes})


def orders(outside: Platform) -> int:
    return int(
        outside.sql(f"SELECT coalesce(sum(orders), 0) FROM serving.orders_by_day WHERE store_id = {STORE}")[0][0]
    )


def send(outside: Platform, number: int) -> None:
    """Orders through the published door of Kafka; returns when their answer, through that of SQL, has them."""
    before, file = orders(outside), outside.settings.home / "orders"
    file.write_text("".join(f"{order()}\n" for _ in range(number)))
    outside.tidemark("send", "order_placed", "--file", str(file), "--quiet")
    await_true(lambda: orders(outside) == before + number, 300, f"{number} orders do not count", every=1)


def test_every_service_is_healthy_and_status_says_so_over_the_network(deployment: Deployment) -> None:
    assert [name for name in LASTING if not deployment.is_healthy(name)] == []
    asked = deployment.exec("speed", "tidemark", "status", "--json")
    parts = json.loads(asked.stdout)["parts"]
    assert {part["name"]: part["said"] for part in parts if not part["ready"]} == {}
    assert ({part["name"] for part in parts}, asked.returncode) == (set(TIDEMARK) - {"generator"}, 0)


def test_the_three_doors_are_published_on_loopback_and_nothing_else_is(deployment: Deployment) -> None:
    published = {name: deployment.inspect(name)["NetworkSettings"]["Ports"] or {} for name in LASTING}
    hosts = {name: {at["HostIp"] for ats in ports.values() for at in ats or []} for name, ports in published.items()}
    assert {name: where for name, where in hosts.items() if where} == {door: {"127.0.0.1"} for door in DOORS}


def test_events_go_in_and_answers_come_out_from_outside(outside: Platform) -> None:
    assert orders(outside) == 0
    send(outside, 100)
    assert orders(outside) == 100


@pytest.mark.parametrize("codec", ["snappy", "zstd"])
def test_the_broker_compresses_by_native_code(outside: Platform, codec: str) -> None:
    """It is unpacked where the broker may execute it: nothing in /tmp may be."""
    topic, servers = f"compressed-{codec}", outside.settings.kafka
    admin = KafkaAdminClient(bootstrap_servers=servers)
    admin.create_topics([NewTopic(topic, 1, 1, topic_configs={"compression.type": codec})])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=servers, acks="all")
    assert producer.send(topic, b"value" * 100).get(timeout=60).offset == 0
    producer.close()


def test_airflow_refuses_the_anonymous(outside: Platform) -> None:
    with pytest.raises(HTTPError, match="401"):
        urlopen(f"{outside.settings.airflow_url}/api/v2/dags", timeout=60)


def test_the_batch_layer_runs_by_rest_to_its_end(outside: Platform) -> None:
    run = outside.airflow("/dags/batch_layer/dagRuns", {"logical_date": None})["dag_run_id"]
    state = f"/dags/batch_layer/dagRuns/{run}"
    await_true(lambda: outside.airflow(state)["state"] in ("success", "failed"), 2400, f"{run} does not end", every=5)
    tasks = outside.airflow(f"{state}/taskInstances")["task_instances"]
    assert {task["task_id"]: task["state"] for task in tasks if task["state"] != "success"} == {}
    links = outside.airflow(f"{state}/taskInstances/audit/links")["extra_links"]
    assert links["Data Docs"].startswith(f"{outside.settings.airflow_url}/")  # where a browser reaches it
    assert outside.page(links["Data Docs"])
    assert orders(outside) == 100
    send(outside, 10)


def test_a_part_runs_as_nobody_special_on_a_disk_that_it_cannot_write(deployment: Deployment) -> None:
    for name in set(TIDEMARK) - {"generator"}:
        assert deployment.exec(name, "id", "-u").stdout.strip() == b"1000"
        assert deployment.exec(name, "touch", "/opt/tidemark/x", "/home/tidemark/x").returncode == 1
        assert deployment.exec(name, "cp", "/bin/true", "/tmp/program").returncode == 0
        assert deployment.exec(name, "/tmp/program").returncode != 0


def test_no_secret_is_in_an_image_an_environment_or_a_command_line(deployment: Deployment) -> None:
    made = deployment.exec("airflow-api", "cat", "/var/lib/tidemark/secrets.json").stdout
    secrets = [*json.loads(made).values(), (SECRETS / "postgres_password").read_text()]
    shown = deployment.engine.ask("history", "--no-trunc", "tidemark") + deployment.engine.ask("inspect", "tidemark")
    for name in LASTING:
        shown += json.dumps(deployment.inspect(name))
        shown += deployment.exec(name, "sh", "-c", "cat /proc/[0-9]*/cmdline").stdout.decode(errors="replace")
    assert [secret for secret in secrets if secret in shown] == []
    assert deployment.exec("speed", "ls", "/opt/tidemark/.secrets").returncode != 0


def test_what_the_engine_does_is_told_by_its_command(deployment: Deployment) -> None:
    for command in ("restart speed", "logs speed", "down", "up", "reset --yes"):
        refused = deployment.exec("speed", "tidemark", *command.split())
        assert refused.returncode == 1 and b"`docker compose " in refused.stderr, refused


def test_the_generator_feeds_the_platform(deployment: Deployment, outside: Platform) -> None:
    deployment.up("generator")
    fed = "SELECT coalesce(sum(orders), 0) FROM serving.orders_by_colour"
    before = int(outside.sql(fed)[0][0])
    await_true(lambda: int(outside.sql(fed)[0][0]) > before + 100, 300, "the generator feeds nothing", every=1)
    deployment.engine.ask("stop", "--time", "30", deployment.container("generator"))
    assert not deployment.inspect("generator")["State"]["Running"]


@pytest.mark.parametrize("service", LASTING)
def test_a_part_that_is_killed_is_back_and_nothing_is_lost(
    deployment: Deployment, outside: Platform, service: str
) -> None:
    before = orders(outside)
    deployment.kill(service)
    deployment.await_healthy(service)
    for name in LASTING:
        deployment.await_healthy(name)
    send(outside, 10)
    assert orders(outside) == before + 10, "what was there is there"


def test_verify_is_green(deployment: Deployment) -> None:
    verified = deployment.exec("speed", "tidemark", "verify")
    assert verified.returncode == 0, verified.stdout.decode() + verified.stderr.decode()
