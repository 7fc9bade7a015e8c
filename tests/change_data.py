"""Change data for tests: a PostgreSQL table whose changes Debezium writes to a Kafka topic, by the users' own files.

public.orders -> logical decoding (pgoutput) -> Debezium in a Kafka Connect worker -> topic `order_row_changed`. The
worker runs `infra/connect/*.properties` as they are; the folder that it is started in holds `connection.properties`.
"""

import json
import secrets
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from infra import jars
from infra.embedded.passwords import write_private
from infra.embedded.shadow import free_ports
from spark_jobs.settings import ROOT
from spark_jobs.storage.java import find_java
from spark_jobs.storage.session import CONF
from tests import postgres
from tests.platform import await_true

FILES = ROOT / "infra/connect"
TABLE = """
CREATE TABLE orders (
    order_id text PRIMARY KEY,
    user_id bigint NOT NULL,
    store_id bigint NOT NULL,
    status text NOT NULL CHECK (status IN ('placed', 'paid', 'shipped', 'cancelled')),
    amount_cents bigint NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now()
)
"""
ROLE = "tidemark_connect"


class Worker:
    """A Kafka Connect worker with the connector `orders`; its folder keeps its connection, its offsets, its log."""

    def __init__(self, folder: Path, connection: dict[str, str]) -> None:
        self.folder = folder
        self.log = folder / "connect.log"
        self.url = f"http://127.0.0.1:{free_ports(1)[0]}"
        lines = {**connection, "rest": self.url}.items()
        write_private(folder / "connection.properties", "".join(f"{name}={value}\n" for name, value in lines))

    def start(self) -> None:
        """Start it and wait until the connector's task runs."""
        java = [str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1"]
        java += [f"-Dlog4j2.configurationFile={CONF / 'log4j2.properties'}", "-cp", f"{_jars()}/*"]
        files = [str(FILES / "worker.properties"), str(FILES / "orders.properties")]
        command = [*java, "org.apache.kafka.connect.cli.ConnectStandalone", *files]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        try:
            await_true(self._runs, 90, f"the connector does not run; see {self.log}")
        except BaseException:
            self.kill()
            raise

    def kill(self) -> None:
        """As a crash would: what was sent since the offsets were last written will be sent again."""
        self.process.kill()
        self.process.wait(30)

    def stop(self) -> None:
        """As an operator would; nothing is repeated after it."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:  # Connect waits for its threads; whoever started it does not
            self.kill()

    def ask(self, path: str) -> Any:
        """The answer of its REST API about the connector."""
        with urllib.request.urlopen(f"{self.url}/connectors/orders/{path}", timeout=5) as answer:
            return json.load(answer)

    def committed_lsn(self) -> int:
        """Up to where nothing is repeated after a crash; 0 while that is the beginning."""
        offsets = self.ask("offsets")["offsets"]
        return int(offsets[0]["offset"]["lsn"]) if offsets else 0

    def _runs(self) -> bool:
        assert self.process.poll() is None, f"Kafka Connect ended: {self.log.read_text()[-4000:]}"
        try:
            status = self.ask("status")
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False
        states = [status["connector"]["state"], *(task["state"] for task in status["tasks"])]
        assert "FAILED" not in states, f"{status}\n{self.log.read_text()[-4000:]}"
        return states == ["RUNNING", "RUNNING"]


class ChangeData:
    """The table, by its owner's connection, and the worker that carries its changes away."""

    def __init__(self, database: "psycopg.Connection[Any]", worker: Worker) -> None:
        self.database = database
        self.worker = worker

    def execute(self, *statements: str) -> None:
        """Run them, all in one transaction."""
        with self.database.transaction():
            for statement in statements:
                self.database.execute(statement)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The table as it is now: order_id -> row."""
        cursor = self.database.cursor(row_factory=dict_row)
        return {row["order_id"]: row for row in cursor.execute("SELECT * FROM orders").fetchall()}

    def kill_connect(self) -> None:
        self.worker.kill()

    def restart_connect(self) -> None:
        """Start it where it ended, or was killed; returns when the connector runs."""
        self.worker.start()


@contextmanager
def change_data(kafka: str, folder: Path, before: Sequence[str] = ()) -> Iterator[ChangeData]:
    """A new table `orders` whose changes go to `order_row_changed`, a topic that must exist in the broker `kafka`.

    `before`: statements that run before the connector starts; their rows come by its snapshot. `folder` must be empty.
    """
    with postgres.running() as cluster, cluster.connect() as database:
        password = secrets.token_urlsafe(18)
        for statement in (
            TABLE,
            (FILES / "source.sql").read_text(),
            f"ALTER ROLE {ROLE} PASSWORD '{password}'",
            *before,
        ):
            database.execute(statement)
        where = {"host": "127.0.0.1", "port": str(cluster.port), "database": "postgres"}
        worker = Worker(folder, {"kafka": kafka, **where, "user": ROLE, "password": password})
        worker.start()
        try:
            yield ChangeData(database, worker)
        finally:
            worker.stop()


def _jars() -> Path:
    """Where Connect's jars are, fetched when they are first asked for."""
    connect = jars.sets()["connect"]
    jars.sync(connect)
    return connect.target / "worker"
