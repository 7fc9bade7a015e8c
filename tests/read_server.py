"""The read server in this process, by the settings of now; its workers are processes of their own."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from infra.embedded.passwords import passwords
from infra.embedded.shadow import free_ports
from spark_jobs.query_server import users
from spark_jobs.query_server.server import configured
from spark_jobs.settings import settings
from tests.platform import await_true


@pytest.fixture
def on_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings for a server that has time: machines under load start workers slowly."""
    for name, port in zip(("QUERY_PORT", "QUERY_FLIGHT_PORT"), free_ports(2), strict=True):
        monkeypatch.setenv(f"TIDEMARK_{name}", str(port))
    monkeypatch.setattr("spark_jobs.query_server.pool.WAIT_SECONDS", 300)


@contextmanager
def served() -> Iterator[str]:
    """The server's URL; it has two more users."""
    settings.cache_clear()
    passwords(settings())
    for role in ("analyst", "service"):
        users.add(settings().query_users, f"an-{role}", role, "secret")
    server = uvicorn.Server(configured(settings()))
    thread = threading.Thread(target=server.run)
    thread.start()
    await_true(lambda: server.started, 180, "the server does not start")
    yield settings().query_url
    server.should_exit = True
    thread.join()
