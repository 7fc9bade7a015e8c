"""Questions that show whether a part answers: each returns, or raises NotReady with what was said instead.

Nothing is inferred from a process that runs or a port that is open.
"""

import json
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import psutil

from infra.embedded.direct import ask
from infra.embedded.program import NotReady
from spark_jobs.client import connect
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import Settings

SECONDS = 5.0


@contextmanager
def _asking(what: str) -> Iterator[None]:
    """Whatever a client library raises is an answer, and what it logs is noise: not ready, for this reason."""
    for library in ("kafka", "thrift", "pyhive"):
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        yield
    except NotReady:
        raise
    except Exception as error:
        raise NotReady(f"{what}: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error


def kafka_answers(settings: Settings) -> None:
    """A metadata request names at least one broker."""
    from kafka import KafkaAdminClient

    from spark_jobs.messaging import security

    servers = settings.kafka
    with _asking(f"Kafka at {servers}"):
        host, _, port = servers.split(",")[0].rpartition(":")
        socket.create_connection((host, int(port)), SECONDS).close()  # the client would try for as long as it may
        timeout = int(SECONDS * 1000)
        admin = KafkaAdminClient(
            **security.client(settings) | {"bootstrap_timeout_ms": timeout},
            request_timeout_ms=timeout,
            client_id="tidemark-up",
        )
        try:
            if not admin.describe_cluster()["brokers"]:
                raise NotReady(f"Kafka at {servers} has no broker yet")
        finally:
            admin.close()


def metastore_answers(settings: Settings) -> list[str]:
    """The names of the embedded metastore's databases, by one Thrift call."""
    from thrift.protocol.TBinaryProtocol import TBinaryProtocol
    from thrift.Thrift import TMessageType, TType
    from thrift.transport.TSocket import TSocket
    from thrift_sasl import TSaslClientTransport

    at = urlsplit(settings.metastore)
    with _asking(f"metastore at {at.netloc}"):
        door = TSocket(at.hostname, at.port)
        door.setTimeout(SECONDS * 1000)
        login = json.loads(settings.metastore_login.read_text())
        transport = TSaslClientTransport(partial(_digest, login["user"], login["password"]), "DIGEST-MD5", door)
        transport.open()
        try:
            protocol = TBinaryProtocol(transport)
            protocol.writeMessageBegin("get_all_databases", TMessageType.CALL, 1)
            protocol.writeFieldStop()
            protocol.writeMessageEnd()
            transport.flush()
            _, kind, _ = protocol.readMessageBegin()
            _, type_of_field, number = protocol.readFieldBegin()
            if kind != TMessageType.REPLY or (type_of_field, number) != (TType.LIST, 0):
                raise NotReady("metastore answers with an error; see its log")
            return [protocol.readString() for _ in range(protocol.readListBegin()[1])]
        finally:
            transport.close()


def _digest(user: str, password: str) -> Any:
    """The client of DIGEST-MD5, which the server begins: pure-sasl says nothing first, on the wire an empty text.

    Hive's servers call themselves `default`, of the protocol null.
    """
    from pyhive.sasl_compat import PureSASLClient

    client = PureSASLClient("default", "null", username=user, password=password)
    start = client.start
    client.start = lambda mechanism: tuple(said or b"" for said in start(mechanism))
    return client


def thrift_answers(settings: Settings) -> None:
    """`select 1` comes back through the Thrift server."""
    from pyhive import hive

    with _asking(f"Thrift server at {settings.thrift}:{settings.thrift_port}"):
        connection = hive.connect(**thrift_login(settings))
        try:
            cursor = connection.cursor()
            cursor.execute("select 1")
            cursor.fetchall()
        finally:
            connection.close()


def query_answers(settings: Settings) -> None:
    """A statement without a table comes back through the read server, to the user that was made with the platform."""
    with _asking(f"read server at {settings.query_url}"):
        trusted = str(settings.query_ca_file) if settings.query_ca_file else None
        with connect(settings.query_url, settings.query_user, settings.password("query"), trusted) as door:
            door.values("SELECT 1 AS one")


def speed_answers(oldest_seconds: float) -> None:
    """The speed application runs its query and has named its views, by a beat of the last `oldest_seconds`."""
    with _asking("speed application"):
        from spark_jobs.ledger import store
        from spark_jobs.speed.status import UNNAMED

        ledger = store.open()
        try:
            beat = ledger.heartbeat("speed")
        finally:
            ledger.close()
        if beat is None:
            raise NotReady("the speed application has written no heartbeat yet")
        is_here = beat.payload.get("host") == socket.gethostname()  # in another container its process is out of sight
        is_gone = is_here and not psutil.pid_exists(beat.payload["pid"])
        if is_gone or beat.payload["state"] != "running":
            raise NotReady(f"the speed application is {beat.payload['state']} (process {beat.payload['pid']})")
        if not beat.payload["is_named"]:
            raise NotReady(f"{UNNAMED}: {beat.payload['alarms'].get(UNNAMED, 'not given yet')}")
        age = (datetime.now(UTC) - beat.at).total_seconds()
        if age > oldest_seconds:
            raise NotReady(f"the speed application's last heartbeat is {age:.0f} s old")


def airflow_health(url: str) -> dict[str, Any]:
    """Airflow's own view of its parts; needs no login."""
    with _asking(f"Airflow at {url}"), ask(f"{url}/api/v2/monitor/health", seconds=SECONDS) as answer:
        health: dict[str, Any] = json.load(answer)
        return health


def airflow_answers(url: str, part: str) -> None:
    """Airflow calls `part` (metadatabase, scheduler, dag_processor, triggerer) healthy."""
    state = airflow_health(url).get(part) or {}
    if state.get("status") != "healthy":
        raise NotReady(f"Airflow's {part} is {state.get('status') or 'not there yet'}")
