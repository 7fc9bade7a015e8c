"""C1: nobody comes in at a door of the running platform without a login, and every door is in docs/security.md."""

import json
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyhive import hive
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import ROOT
from tests.platform import PORTS, Platform

pytestmark = pytest.mark.platform
SECONDS = 10


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
    refused = other.run("sql", "select 1")
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


def test_c1_every_door_is_in_the_table_and_on_loopback(platform: Platform) -> None:
    """A door of a fixed port by its setting, one of a free port by the part and the program that listen."""
    names = {getattr(platform.settings, name): name for name in PORTS}
    rows = re.findall(r"^\| ([^|]+)\|", (ROOT / "docs/security.md").read_text(), re.MULTILINE)
    known = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    found = set()
    for process in platform.processes():
        part, program = process.environ()["TIDEMARK_PROGRAM"], process.name().rstrip("0123456789.")
        for door in process.net_connections("inet"):
            if door.status == psutil.CONN_LISTEN:
                assert door.laddr.ip.removeprefix("::ffff:") == "127.0.0.1", (part, door)
                found.add(names.get(door.laddr.port) or f"{part.partition('-')[0]}: {program}")
    assert {name for name in names.values() if name not in found} == set()
    assert found - known == set(), "a door without a row"


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
    except (ConnectionResetError, TimeoutError):  # PySpark's other door there waits for a token
        return b""


def test_c1_the_supervisors_socket_and_all_of_home_are_their_owners(platform: Platform) -> None:
    for path in (platform.settings.home, platform.settings.run_dir, platform.settings.run_dir / "supervisor.sock"):
        assert path.stat().st_mode & 0o077 == 0, path
