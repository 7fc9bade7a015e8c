"""The Kafka broker: one KRaft node, formatted on its first start.

settings -> server.properties below `home` (mode 0600) -> `kafka.Kafka` over `.jars/kafka`.
Where the protocol is SASL_PLAINTEXT, clients and controller log in, and nobody may do anything unless an ACL says so.
"""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from infra.embedded.passwords import passwords, write_private
from infra.embedded.program import Program
from infra.embedded.readiness import kafka_answers
from spark_jobs.messaging.security import PLAIN, SCRAM, login, quoted
from spark_jobs.settings import ROOT, Settings
from spark_jobs.storage.java import archived_classes, find_java
from spark_jobs.storage.session import CONF

JARS = ROOT / ".jars/kafka"
MECHANISM = "SCRAM-SHA-512"
SPOKEN = (("PLAINTEXT", MECHANISM), ("SASL_PLAINTEXT", MECHANISM))
CONTROLLER = "controller"
OUTSIDE = "OUTSIDE"
"""The listener for clients of another network."""


def program(settings: Settings) -> Program:
    return Program(
        name="broker",
        command=(*java(settings), "kafka.Kafka", str(properties_file(settings))),
        ready=lambda: kafka_answers(settings),
        ports=("kafka_port", "kafka_controller_port"),
        prepare=lambda: prepare(settings),
        patience=60,
        stop_within=30,
    )


def server_properties(settings: Settings) -> dict[str, str]:
    """A single node; topics are made by those who own them, never by a typing error."""
    protocol = settings.kafka_security_protocol
    listeners = [f"{protocol}://{settings.host}:{settings.kafka_port}"]
    advertised = [f"{protocol}://{settings.own_name}:{settings.kafka_port}"]
    if outside := settings.kafka_outside:
        listeners.append(f"{OUTSIDE}://{settings.host}:{outside.rpartition(':')[2]}")
        advertised.append(f"{OUTSIDE}://{outside}")
    controller = f"127.0.0.1:{settings.kafka_controller_port}"  # the broker in this process is its only client
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": ",".join([*listeners, f"CONTROLLER://{controller}"]),
        "advertised.listeners": ",".join(advertised),
        "inter.broker.listener.name": protocol,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": f"{protocol}:{protocol},{OUTSIDE}:{protocol},CONTROLLER:{protocol}",
        "log.dirs": str(settings.kafka_dir / "log"),
        "auto.create.topics.enable": "false",
        "num.partitions": "3",
        "offsets.topic.num.partitions": "3",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "3",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "log.cleaner.dedupe.buffer.size": str(32 * 1024 * 1024),
    }


def logins(listener: str, user: str, password: str, controllers: str) -> dict[str, str]:
    """Who comes in must log in, at both doors; who is not `user` may do only what an ACL says.

    The controller's listener is a door too. Brokers log in there before there are SCRAM users, so by PLAIN.
    """
    of_controller = login(PLAIN, CONTROLLER, controllers).removesuffix(";")
    return {
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        **{
            f"listener.name.{name.lower()}.scram-sha-512.sasl.jaas.config": login(SCRAM, user, password)
            for name in (listener, OUTSIDE)
        },
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f"{of_controller} user_{CONTROLLER}={quoted(controllers)};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{CONTROLLER};User:{user}",
    }


def prepare(settings: Settings) -> None:
    """Write the configuration; format the log folder once (a second time changes nothing)."""
    if (spoken := (settings.kafka_security_protocol, settings.kafka_sasl_mechanism)) not in SPOKEN:
        raise SystemExit(f"the embedded broker speaks PLAINTEXT and {' with '.join(SPOKEN[1])}, not {spoken}")
    settings.tmp_dir.mkdir(parents=True, exist_ok=True)
    secret, user = passwords(settings), (settings.kafka_user, settings.password("kafka"))
    properties = server_properties(settings)
    if settings.kafka_security_protocol != "PLAINTEXT":
        properties |= logins(settings.kafka_security_protocol, *user, secret["kafka_controller_password"])
    write_properties(settings, properties)
    if not (settings.kafka_dir / "log/meta.properties").exists():
        format_log(settings, dict([user]))


def write_properties(settings: Settings, properties: Mapping[str, str]) -> None:
    """A private file: it may have passwords."""
    lines = (f"{key}={_escaped(value)}\n" for key, value in properties.items())
    write_private(properties_file(settings), "".join(lines))


def _escaped(value: str) -> str:
    """A value in Java's files of properties: a backslash is two, what is not ASCII goes by its UTF-16 units."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2]) for at in range(0, len(units), 2))
    return "".join(chr(code) if code < 128 else f"\\u{code:04x}" for code in codes)


def format_log(settings: Settings, users: Mapping[str, str]) -> None:
    """Make the log folder, and put into it who may log in: also where the broker asks nobody yet."""
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    named = f"--cluster-id={cluster}"  # one id in 64 begins with a dash and would be taken for an option
    arguments = ["format", "--ignore-formatted", named, "-c", str(properties_file(settings))]
    for name, password in users.items():
        arguments += ["--add-scram", f"{MECHANISM}=[name={name},password={password}]"]
    said = settings.kafka_dir / "format.arguments"  # no password stands on a command line
    write_private(said, "\n".join(arguments))
    try:
        command = [*java(settings), "kafka.tools.StorageTool", f"@{said}"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # it prints the keys made of the passwords
    finally:
        said.unlink()


def properties_file(settings: Settings) -> Path:
    return settings.kafka_dir / "server.properties"


def java(settings: Settings) -> tuple[str, ...]:
    heap = f"-Xmx{settings.kafka_memory_mb}m"
    log = f"-Dlog4j2.configurationFile={CONF / 'log4j2.properties'}"
    tmp = f"-Djava.io.tmpdir={settings.tmp_dir}"  # snappy and zstd load their native code from there
    return (str(find_java()), heap, "-XX:+UseG1GC", log, tmp, *archived_classes("kafka"), "-cp", f"{JARS}/*")
