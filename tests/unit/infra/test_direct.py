"""The platform's commands reach its Airflow past the proxy that the caller's shell names."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from infra.embedded.airflow_api import AirflowApi
from infra.embedded.readiness import airflow_health
from spark_jobs.settings import Settings

HEALTHY = {"metadatabase": {"status": "healthy"}, "access_token": "a token"}


class Airflow(BaseHTTPRequestHandler):
    """Healthy, and content with every login."""

    def do_GET(self) -> None:
        said = json.dumps(HEALTHY).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Airflow's, in a shell whose proxy nobody answers for."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Airflow) as server:
        Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def test_no_proxy_is_asked_whether_airflow_is_ready(port: int) -> None:
    assert airflow_health(f"http://127.0.0.1:{port}") == HEALTHY


def test_no_proxy_is_told_the_admins_password(port: int, tmp_path: Path) -> None:
    assert AirflowApi(Settings(home=tmp_path, airflow_port=port)).get("/dags") == HEALTHY
