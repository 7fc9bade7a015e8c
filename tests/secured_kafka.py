"""A Kafka as other people run it: logins by SCRAM, TLS, and nothing allowed unless an ACL says so.

The platform's own jars and configuration, with three doors: `secured` (SASL_SSL), `expired` (the same with a
certificate that has expired), `mutual` (SSL; clients show a certificate).
"""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from kafka.errors import KafkaError

from infra.embedded import broker
from infra.embedded.broker import MECHANISM
from infra.embedded.shadow import free_ports
from spark_jobs.messaging.security import SCRAM, login
from spark_jobs.settings import Settings
from tests.certificates import DAY, Authority
from tests.platform import await_true

USERS = {"operator": "first secret", "tidemark": 'se"co\\nd'}
BEGINS_WITH_A_DASH = uuid.UUID(bytes=b"\xf8" * 16)
"""As one in 64 of Kafka's cluster ids does, as it is written."""
Process: TypeAlias = "subprocess.Popen[bytes]"
PROTOCOLS = {"SECURED": "SASL_SSL", "EXPIRED": "SASL_SSL", "MUTUAL": "SSL"}


@dataclass(frozen=True)
class SecuredKafka:
    """`doors`: name -> settings of a client that comes in there; the user `tidemark` has no rights yet."""

    doors: dict[str, dict[str, Any]]
    operator: dict[str, Any]
    authority: Authority

    def allow(self, *topics: str, operations: tuple[ACLOperation, ...]) -> None:
        rules = [
            ACL("User:tidemark", "*", operation, ACLPermissionType.ALLOW, ResourcePattern(ResourceType.TOPIC, topic))
            for topic in topics
            for operation in operations
        ]
        admin = KafkaAdminClient(**self.operator)
        admin.create_acls(rules)
        admin.close()


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """The broker, once it answers its operator; ended on leaving."""
    authority, ports = Authority(folder), free_ports(4)
    here = Settings(home=folder, kafka_memory_mb=256)
    broker.write_properties(here, broker.server_properties(here) | _properties(authority, ports))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uuid, "uuid4", lambda: BEGINS_WITH_A_DASH)
        broker.format_log(here, USERS)
    command = [*broker.java(here), "kafka.Kafka", str(broker.properties_file(here))]
    with (folder / "broker.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield _answering(authority, ports, process, folder)
    finally:
        process.terminate()
        process.wait(timeout=60)


def _answering(authority: Authority, ports: list[int], process: Process, folder: Path) -> SecuredKafka:
    common = {"kafka_security_protocol": "SASL_SSL", "kafka_ca_file": authority.ca, "kafka_user": "tidemark"}
    password = folder / "password"
    password.write_text(USERS["tidemark"] + "\n")
    certificate, key, _ = authority.issue("client")
    doors: dict[str, dict[str, Any]] = {
        name.lower(): common | {"kafka_servers": f"127.0.0.1:{port}", "kafka_password_file": password}
        for name, port in zip(PROTOCOLS, ports, strict=False)
    }
    doors["mutual"] |= {"kafka_security_protocol": "SSL", "kafka_certificate_file": certificate, "kafka_key_file": key}
    login_of_operator = {"sasl_plain_username": "operator", "sasl_plain_password": USERS["operator"]}
    tls = {"security_protocol": "SASL_SSL", "ssl_cafile": str(authority.ca), "sasl_mechanism": MECHANISM}
    operator = {"bootstrap_servers": doors["secured"]["kafka_servers"], **tls, **login_of_operator}
    await_true(partial(_answers, operator, process), 90, f"Kafka does not answer; see {folder}/broker.log", every=0.5)
    return SecuredKafka(doors, operator, authority)


def _answers(operator: dict[str, Any], process: Process) -> bool:
    assert process.poll() is None, "Kafka has ended; its log says why"
    try:
        KafkaAdminClient(**operator, bootstrap_timeout_ms=1000).close()
    except KafkaError:
        return False
    return True


def _properties(authority: Authority, ports: list[int]) -> dict[str, str]:
    addresses = {name: f"{name}://127.0.0.1:{port}" for name, port in zip(PROTOCOLS, ports, strict=False)}
    controller = f"127.0.0.1:{ports[-1]}"
    return broker.logins("SECURED", "operator", USERS["operator"], "a secret") | {
        "controller.quorum.voters": f"1@{controller}",
        "listeners": ",".join([*addresses.values(), f"CONTROLLER://{controller}"]),
        "advertised.listeners": ",".join(addresses.values()),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in (PROTOCOLS | {"CONTROLLER": "SASL_PLAINTEXT"}).items()
        ),
        "inter.broker.listener.name": "SECURED",
        "super.users": "User:controller;User:operator;User:CN=client",
        "listener.name.expired.scram-sha-512.sasl.jaas.config": login(SCRAM, "operator", USERS["operator"]),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.ca),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker")[2]),
        "listener.name.expired.ssl.keystore.type": "PEM",
        "listener.name.expired.ssl.keystore.location": str(authority.issue("old", -DAY)[2]),
        "listener.name.mutual.ssl.client.auth": "required",
    }
