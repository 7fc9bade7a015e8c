"""The Kafka broker: one KRaft node on one address, formatted on its first start.

settings -> server.properties below `home` -> `kafka.Kafka` over `.jars/kafka`.
"""

import subprocess
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from infra.embedded.program import Program
from infra.embedded.readiness import kafka_answers
from spark_jobs.settings import ROOT, Settings
from spark_jobs.storage.java import archived_classes, find_java
from spark_jobs.storage.session import CONF

JARS = ROOT / ".jars/kafka"


def program(settings: Settings) -> Program:
    return Program(
        name="broker",
        command=(*_java(settings), "kafka.Kafka", str(_properties_file(settings))),
        ready=lambda: kafka_answers(settings.kafka),
        ports=("kafka_port", "kafka_controller_port"),
        prepare=lambda: prepare(settings),
        patience=60,
        stop_within=30,
    )


def server_properties(settings: Settings) -> dict[str, str]:
    """A single node; topics are made by those who own them, never by a typing error."""
    broker = f"{settings.host}:{settings.kafka_port}"
    controller = f"{settings.host}:{settings.kafka_controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@{controller}",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
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


def prepare(settings: Settings) -> None:
    """Write the configuration; format the log folder once (a second time changes nothing)."""
    file = _properties_file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{key}={value}\n" for key, value in server_properties(settings).items()))
    if (settings.kafka_dir / "log/meta.properties").exists():
        return
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    storage = ("kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", cluster, "-c", str(file))
    subprocess.run([*_java(settings), *storage], check=True)


def _properties_file(settings: Settings) -> Path:
    return settings.kafka_dir / "server.properties"


def _java(settings: Settings) -> tuple[str, ...]:
    heap = f"-Xmx{settings.kafka_memory_mb}m"
    log = f"-Dlog4j2.configurationFile={CONF / 'log4j2.properties'}"
    return (str(find_java()), heap, "-XX:+UseG1GC", log, *archived_classes("kafka"), "-cp", f"{JARS}/*")
