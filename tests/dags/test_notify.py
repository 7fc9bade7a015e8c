"""Alarms are told by a real mail server and a real webhook, once each: the real command over a ledger beside them."""

import json
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_string
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, context
from tidemark_airflow.notify import AlarmNotifier, FailureNotifier
from tidemark_airflow.run_id import run_id_of

from spark_jobs.orchestration import interface

PYTHON = ROOT / ".venv/bin/python"
SETTLE = """
import json, sys
from spark_jobs.ledger import store
store.open().settle_alarms(json.loads(sys.argv[1]))
"""
CONNECTIONS = """
import json
from infra.embedded.airflow_connections import connections
from spark_jobs.settings import settings
print(json.dumps(connections(settings())))
"""
LAG = {"lag: order_placed": "3 records are unread {{ secrets }} <b>"}


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs; keeps the messages."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline().decode().strip().upper():
            if line == "DATA":
                self.wfile.write(b"354 go on\r\n")
                lines = iter(lambda: self.rfile.readline().decode(), ".\r\n")
                self.server.taken.append("".join(lines))  # type: ignore[attr-defined]
            self.wfile.write(b"221 bye\r\n" if line == "QUIT" else b"250 ok\r\n")


class Hook(BaseHTTPRequestHandler):
    """A webhook; keeps what is posted."""

    def do_POST(self) -> None:
        posted = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.taken.append((self.path, posted))  # type: ignore[attr-defined]
        self.send_response(self.server.answer)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(server: Any) -> Iterator[Any]:
    server.taken, server.answer = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """A mail server and a webhook, and the file with Airflow's connections to them, made of the settings.

    Airflow keeps the backends of its first look, so all tests of this module share them.
    """
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("connections")
    with (
        serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail)) as mails,
        serving(HTTPServer(("127.0.0.1", 0), Hook)) as hook,
    ):
        (folder / "webhook").write_text(f"http://127.0.0.1:{hook.server_port}/services/secret\n")
        patch.setenv(interface.MAIL_TO_VARIABLE, "ada@example.org,bob@example.org")
        patch.setenv("TIDEMARK_ALARMS_SMTP", f"smtp+plain://127.0.0.1:{mails.server_address[1]}")
        patch.setenv(interface.WEBHOOK_VARIABLE, str(folder / "webhook"))
        said = subprocess.run([PYTHON, "-c", CONNECTIONS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        (folder / "connections.json").write_text(said)
        where = json.dumps({"connections_file_path": str(folder / "connections.json")})
        patch.setenv("AIRFLOW__SECRETS__BACKEND", "airflow.secrets.local_filesystem.LocalFilesystemBackend")
        patch.setenv("AIRFLOW__SECRETS__BACKEND_KWARGS", where)
        yield mails, hook
        patch.undo()


@pytest.fixture
def servers(told: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The two, and a ledger, that know of nothing yet."""
    monkeypatch.setenv("TIDEMARK_HOME", str(tmp_path))
    for server in told:
        server.taken.clear()
    return told


def settle(**ringing: Any) -> None:
    """What rings now."""
    subprocess.run([PYTHON, "-c", SETTLE, json.dumps(ringing)], cwd=ROOT, check=True)


def test_c2_each_alarm_is_told_once_when_it_is_raised_and_once_when_it_is_cleared(servers: tuple[Any, Any]) -> None:
    mails, hook = servers
    settle(**LAG)
    for _ in range(2):
        AlarmNotifier()({})
    [(path, posted)] = hook.taken
    assert path == "/services/secret" and posted["runbook"] == "docs/runbooks/alarms.md#lag"
    assert posted["text"].startswith("Tidemark: lag: order_placed is raised\n3 records are unread {{ secrets }}")
    [mail] = map(message_from_string, mails.taken)
    assert (mail["Subject"], mail["To"]) == (
        "Tidemark: lag: order_placed is raised",
        "ada@example.org, bob@example.org",
    )
    [part] = [part for part in mail.walk() if part.get_content_maintype() == "text"]
    assert b"unread {{ secrets }} &lt;b&gt;" in part.get_payload(decode=True)
    settle()
    for _ in range(2):
        AlarmNotifier()({})
    assert [posted["text"].splitlines()[0] for _, posted in hook.taken[1:]] == [
        "Tidemark: lag: order_placed is cleared"
    ]
    assert len(mails.taken) == 2


def test_what_no_channel_takes_is_told_with_the_next_run(
    servers: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, hook = servers
    monkeypatch.setenv(interface.MAIL_TO_VARIABLE, "")
    settle(**LAG)
    hook.answer = 503
    AlarmNotifier()({})
    hook.answer = 200
    AlarmNotifier()({})
    AlarmNotifier()({})
    assert len(hook.taken) == 2


def test_a_task_that_failed_for_good_has_people_told_of_its_run_at_once(servers: tuple[Any, Any]) -> None:
    failed = """
import sys
from spark_jobs.ledger import store
from spark_jobs.ledger.schema import Run
ledger = store.open()
ledger.begin_run(Run(run_id=sys.argv[1], cut=1))
ledger.fail_run(sys.argv[1], "the disk was full")
"""
    run_id = run_id_of("monday")
    subprocess.run([PYTHON, "-c", failed, run_id], cwd=ROOT, check=True)
    FailureNotifier()(context("monday", task="build"))
    told = [posted["text"] for _, posted in servers[1].taken]
    words = f"Tidemark: run failed is raised\nrun {run_id} failed after its step plan: the disk was full"
    assert any(text.startswith(words) for text in told)


def test_where_no_receiver_is_named_nothing_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interface.COMMAND_VARIABLE, "/nowhere")
    for name in (interface.MAIL_TO_VARIABLE, interface.WEBHOOK_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    asked = list[object]()
    monkeypatch.setattr("tidemark_airflow.command.answer", asked.append)
    AlarmNotifier()({})
    assert asked == []
