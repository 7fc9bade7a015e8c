"""C1: nobody comes in at a door of the running platform without a login, and every door is in docs/security.md."""

import json
import re
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyhive import hive
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from infra.embedded.passwords import passwords
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import ROOT
from tests.platform import PORTS, Platform

pytestmark = pytest.mark.platform
SECONDS = 10
FREE = {"/api/v2/monitor/health", "/api/v2/version", "/api/v2/auth/login", "/api/v2/auth/logout"}
"""What Airflow answers without a token: that it lives, its version, its login page."""
PRIVATE = (
    "secrets.json",
    "run/thrift.login",
    "kafka/server.properties",
    "airflow/airflow.cfg",
    "airflow/passwords.json",
)
"""The files with secrets."""


def kafka(key: int, version: int, body: bytes) -> bytes:
    """A request as Kafka's protocol frames it."""
    request = struct.pack(">hhih", key, version, 1, -1) + body
    return struct.pack(">i", len(request)) + request


TOPIC = struct.pack(">ih8sihiiib", 1, 8, b"stranger", 1, 1, 0, 0, 9999, 0)
WORDS = (
    b"GET / HTTP/1.0\r\n\r\n",
    b"c\np0\ncall\nn\nL7\ne\n",  # py4j: a function of Python's
    b"c\nz:java.lang.System\ngetProperty\nsuser.home\ne\n",  # py4j: a method of Java's
    struct.pack(">i5s", 5, b"wrong"),  # the secret of a Python worker
    kafka(3, 1, struct.pack(">i", -1)),  # which topics are there
    kafka(19, 2, TOPIC),  # make one
)
"""What a stranger may try, in the language of one door or another."""
NO_ANSWER = {
    "metrics_port": rb"HTTP/1\.0 .*|<!DOCTYPE HTML>.*",  # it is open, and knows no other language
    "query_port": rb"HTTP/1\.1 40[01] .*",  # no login, or no HTTP
    "query_flight_port": rb"\0\0\x18\x04\0.{41}",  # gRPC's settings
    "airflow_port": rb"HTTP/1\.1 .*",  # see the test of its routes
    "java": rb"![xz].*",  # py4j refuses
    "python": rb".{4}(\0\0\0\x03err)?",  # a worker's number, and that the secret is wrong
}
"""Door, or program that listens -> what it says to strangers, if anything."""


def doors(platform: Platform) -> Iterator[tuple[str, tuple[str, int]]]:
    """Every door that listens: one of a fixed port by its setting, one of a free port by the part and the program."""
    names = {getattr(platform.settings, name): name for name in PORTS}
    for process in platform.processes():
        with suppress(psutil.NoSuchProcess):  # a task that has ended meanwhile
            part, program = process.environ()["TIDEMARK_PROGRAM"], process.name().rstrip("0123456789.")
            for door in process.net_connections("inet"):
                if door.status == psutil.CONN_LISTEN:
                    yield names.get(door.laddr.port) or f"{part.partition('-')[0]}: {program}", door.laddr


@pytest.mark.parametrize("login", [{}, {"username": "tidemark", "password": "wrong", "auth": "CUSTOM"}])
def test_c1_thrift_refuses_who_is_anonymous_and_who_is_wrong(platform: Platform, login: dict[str, Any]) -> None:
    at = {"host": platform.settings.thrift, "port": platform.settings.thrift_port}
    with pytest.raises(TTransportException, match="Error validating the login"):
        hive.connect(**at, **login)


def test_c1_thrift_refuses_another_user_and_a_connection_without_sasl(platform: Platform) -> None:
    with pytest.raises(TTransportException, match="Error validating the login"):
        hive.connect(**thrift_login(platform.settings) | {"username": "root"})
    at = {"host": platform.settings.thrift, "port": platform.settings.thrift_port}
    with pytest.raises(TTransportException, match="read 0 bytes"):
        hive.connect(**at, auth="NOSASL")


def test_c1_a_wrong_password_is_named_by_the_command(platform: Platform, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("wrong")
    other = Platform(platform.settings.model_copy(update={"thrift_password_file": tmp_path / "wrong"}))
    refused = other.run("sql", "select 1", "--engine", "spark")
    assert refused.returncode == 1
    assert "refuses tidemark's password; TIDEMARK_THRIFT_USER and TIDEMARK_THRIFT_PASSWORD_FILE" in refused.stderr


def test_c1_the_metastore_answers_nobody_without_its_token(platform: Platform) -> None:
    door = TSocket("127.0.0.1", platform.settings.metastore_port)
    door.setTimeout(SECONDS * 1000)
    transport = TBufferedTransport(door)
    transport.open()
    protocol = TBinaryProtocol(transport)
    protocol.writeMessageBegin("get_all_databases", TMessageType.CALL, 1)
    protocol.writeFieldStop()
    protocol.writeMessageEnd()
    transport.flush()
    with pytest.raises(TTransportException, match="read 0 bytes"):
        protocol.readMessageBegin()


def test_c1_airflow_gives_no_token_for_a_wrong_password(platform: Platform) -> None:
    body = json.dumps({"username": "admin", "password": "wrong"}).encode()
    headers = {"Content-Type": "application/json"}
    for path, data in (("/auth/token", body), ("/api/v2/dags", None), ("/api/v2/dags/batch_layer/dagRuns", b"{}")):
        request = urllib.request.Request(platform.settings.airflow_url + path, data, headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        assert refused.value.code == 401, path


def test_c1_airflow_answers_nobody_on_any_of_its_routes(platform: Platform) -> None:
    at = platform.settings.airflow_url
    routes = json.loads(urllib.request.urlopen(f"{at}/openapi.json", timeout=60).read())["paths"]
    asked = [(method, path) for path, methods in routes.items() for method in methods if path not in FREE]
    asked += [("get", "/execution/connections/tidemark_mail"), ("patch", "/execution/task-instances/1/run")]
    assert len(asked) > 100
    headers = {"Content-Type": "application/json"}
    for method, path in asked:
        url, data = at + re.sub(r"\{[^}]*\}", "1", path), None if method == "get" else b"{}"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method.upper()), timeout=60)
        assert refused.value.code in (401, 403), (method, path)


def test_c1_every_door_is_in_the_table_and_on_loopback(platform: Platform) -> None:
    listening = [*doors(platform)]
    assert [door for door in listening if door[1][0].removeprefix("::ffff:") != "127.0.0.1"] == []
    assert {name for name in PORTS if name not in dict(listening)} == set()
    assert_known(set(dict(listening)))


def assert_known(found: set[str]) -> None:
    rows = re.findall(r"^\| ([^|]+)\|", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    assert found - {name for row in rows for name in re.findall(r"`([^`]+)`", row)} == set(), "a door without a row"


def test_c1_no_door_tells_a_stranger_anything(platform: Platform) -> None:
    """Kafka's doors are among them where it asks for logins."""
    open_by_default = platform.settings.kafka_security_protocol == "PLAINTEXT"
    listening = [door for door in doors(platform) if not (open_by_default and door[0].startswith("kafka_"))]
    tried = [*product(listening, WORDS)]
    with ThreadPoolExecutor(len(WORDS)) as strangers:
        answers = [*strangers.map(lambda one: said_to(one[0][1][1], one[1]), tried)]
    told = [
        (name, word, answer)
        for ((name, _), word), answer in zip(tried, answers, strict=True)
        if answer and not re.fullmatch(NO_ANSWER.get(name.rpartition(" ")[2], b""), answer, re.DOTALL)
    ]
    assert told == []


def said_to(port: int, word: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as stranger:
        stranger.settimeout(2)
        stranger.sendall(word)
        return _answer(stranger)


def test_c1_no_secret_is_on_a_command_line_in_an_environment_or_in_a_file_of_others(platform: Platform) -> None:
    secrets, home = passwords(platform.settings), platform.settings.home
    for process in platform.processes():
        with suppress(psutil.NoSuchProcess):  # a task that has ended meanwhile
            shown = " ".join([*process.cmdline(), *([] if process.name() == "dbt" else process.environ().values())])
            assert [name for name, secret in secrets.items() if secret in shown] == [], process
    for file in home.rglob("*"):
        if str(file.relative_to(home)) in PRIVATE:
            assert file.stat().st_mode & 0o077 == 0, file
        elif file.is_file() and file.suffix not in (".index", ".timeindex"):  # Kafka's, of numbers, 10 MiB each
            with suppress(FileNotFoundError):  # a scratch file that is gone meanwhile
                text = file.read_bytes()
                assert [name for name, secret in secrets.items() if secret.encode() in text] == [], file


def test_c1_pythons_side_of_the_speed_application_takes_no_strangers_call(platform: Platform) -> None:
    """PySpark lets a JVM call back; without a token, whoever can open a socket could call the micro-batch."""
    (application,) = [one for one in platform.processes("speed") if "spark_jobs.speed" in one.cmdline()]
    doors = [door for door in application.net_connections("inet") if door.status == psutil.CONN_LISTEN]
    assert doors, "the callbacks' door"
    for door in doors:
        with socket.create_connection(door.laddr, SECONDS) as stranger:
            stranger.settimeout(SECONDS)
            stranger.sendall(b"c\np0\ncall\nn\nL7\ne\n")
            assert not _answer(stranger).startswith(b"!"), "py4j's sign that it has called"


def _answer(door: socket.socket) -> bytes:
    try:
        return door.recv(100)
    except (ConnectionError, TimeoutError):  # PySpark's other door there waits for a token
        return b""


def test_c1_the_supervisors_socket_and_all_of_home_are_their_owners(platform: Platform) -> None:
    for path in (platform.settings.home, platform.settings.run_dir, platform.settings.run_dir / "supervisor.sock"):
        assert path.stat().st_mode & 0o077 == 0, path
