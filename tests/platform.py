"""One embedded platform for all tests that need the real thing: on free ports, in a temporary home.

The tests talk to it as people do: through the `tidemark` command, SQL, and Airflow's REST API.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pytest
from sqlalchemy import URL

from infra.embedded import leftovers
from infra.embedded.passwords import passwords
from infra.embedded.shadow import PORTS, SHORT_LIVED, free_ports
from spark_jobs.ledger import store as ledger
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import ROOT, Settings

LINES = 40
"""Of a failed task's log."""
LOGINS = ("thrift_password_file", "kafka_security_protocol")
SMALL = {
    "speed_memory_mb": 1024,
    "thrift_memory_mb": 1024,
    "batch_memory_mb": 1024,
    "server_java_options": SHORT_LIVED,
}


@dataclass(frozen=True)
class Platform:
    """A running platform; every method takes part in it as a user would."""

    settings: Settings

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to mean this platform and no other; coverage is not measured in it, it slows imports."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(("TIDEMARK_", "COVERAGE_"))}
        changed = {"home", "project", "views_folder", "trigger_ms", *LOGINS, *PORTS, *SMALL}
        own = self.settings.model_dump(include=changed, exclude_unset=True)
        return others | {f"TIDEMARK_{name.upper()}": str(value) for name, value in own.items()}

    def run(self, *arguments: str, timeout: float = 900) -> "subprocess.CompletedProcess[str]":
        """`tidemark ARGUMENTS`, whatever its exit code."""
        command = [ROOT / "tidemark", *arguments]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, timeout=timeout
        )

    def tidemark(self, *arguments: str, timeout: float = 900) -> str:
        """What `tidemark ARGUMENTS` prints; fails with both its outputs unless the exit code is 0."""
        done = self.run(*arguments, timeout=timeout)
        assert done.returncode == 0, f"tidemark {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def status(self) -> dict[str, Any]:
        """`tidemark status --json`, with the parts by name."""
        now: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return {**now, "parts": {part["name"]: part for part in now["parts"]}}

    def heartbeat(self) -> dict[str, Any]:
        """What the speed application last said of itself; `tidemark speed status` takes a core for a second to ask."""
        beat = self._ledger.heartbeat("speed")
        return {} if beat is None else beat.payload

    @cached_property
    def _ledger(self) -> ledger.Store:
        return ledger.open(URL.create("sqlite+pysqlite", database=str(self.settings.home / "ledger.db")))

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """The rows of a query over the Thrift server."""
        from pyhive import hive

        with hive.connect(**thrift_login(self.settings)) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            rows: list[tuple[Any, ...]] = cursor.fetchall() if cursor.description else []
            return rows

    def delta(self, table: str) -> str:
        """Where the files of `schema.table` are."""
        schema, name = table.split(".")
        return f"{self.settings.warehouse}/{schema}.db/{name}"

    def airflow(self, path: str, body: dict[str, Any] | None = None, method: str | None = None) -> Any:
        """The answer of Airflow's REST API (`/api/v2` + path) to its administrator."""
        return json.loads(self._ask(f"{self.settings.airflow_url}/api/v2{path}", body, self._authorised, method))

    def pause(self, dag: str, is_paused: bool = True) -> None:
        """Stop what starts a DAG's runs, or let it start them again, once Airflow knows the DAG."""
        await_true(lambda: dag in self._dags(), 120, f"Airflow does not know {dag}", every=1)
        self.airflow(f"/dags/{dag}", {"is_paused": is_paused}, "PATCH")

    def _dags(self) -> set[str]:
        return {found["dag_id"] for found in self.airflow("/dags?limit=100")["dags"]}

    def why_failed(self, dag: str, run: str) -> str:
        """What the failed tasks of a run said last: the platform, and its logs, are gone a moment later."""
        tasks = f"/dags/{dag}/dagRuns/{quote(run)}/taskInstances"
        said = [f"{run}:"]
        for task in self.airflow(tasks)["task_instances"]:
            if task["state"] == "failed":
                log = self.airflow(f"{tasks}/{task['task_id']}/logs/{task['try_number']}")["content"][-LINES:]
                lines = [line if isinstance(line, str) else line["event"] for line in log]
                said += [f"{task['task_id']}, {task['duration']} s:", *lines]
        return "\n".join(said)

    def page(self, url: str) -> str:
        """A page of Airflow's web server, as its administrator sees it."""
        return self._ask(url, None, self._authorised).decode()

    @cached_property
    def _authorised(self) -> dict[str, str]:
        password = passwords(self.settings)["airflow_admin_password"]
        login = {"username": "admin", "password": password}
        token = json.loads(self._ask(f"{self.settings.airflow_url}/auth/token", login, {}))["access_token"]
        return {"Authorization": f"Bearer {token}"}

    @staticmethod
    def _ask(url: str, body: dict[str, Any] | None, headers: dict[str, str], method: str | None = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            content: bytes = answer.read()
            return content

    def processes(self, part: str | None = None) -> list[psutil.Process]:
        """Its living processes (of one part)."""
        return list(leftovers.marked(self.settings.home, part))

    def await_ready(self, part: str, *, other_than: int, seconds: float = 180) -> float:
        """Wait until `part` answers from another process than `other_than`; the seconds that it took."""

        def back() -> bool:
            now = self.status()["parts"][part]
            return bool(now["ready"]) and now["pid"] != other_than

        return await_true(back, seconds, f"{part} does not come back", every=1)


def await_true(condition: Callable[[], bool], seconds: float, otherwise: str, every: float = 0.25) -> float:
    """Ask `every` so many seconds until it holds; fails with `otherwise` after `seconds`."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, otherwise
        time.sleep(every)
    return time.monotonic() - began


NEW_SCHEMA = "page_viewed.v2"
OLDER_LOG = f"""
from spark_jobs.contracts.schema_history import EVERY_SCHEMA, SchemaHistory
from spark_jobs.speed import land
land.create(SchemaHistory(tuple(one for one in EVERY_SCHEMA.with_new(0).entries if one.name != {NEW_SCHEMA!r})))
"""
"""The log begins as if NEW_SCHEMA had been written after it."""


OF_EACH_KIND = [
    "orders_by_day",
    "orders_by_hour",
    "departures_by_airport_hour",
    "orders_by_colour",
    "word_count",
    "bus_latest",
    "sessions",
    "trades",
    "trades_by_colour",
    "top_sellers",
    "late_and_rejected",
    "items_sold_last_hour",
    "lift_rides_sliding",
    "page_views_by_zip",
    "order_state",
    "orders_current",
    "payments_scored",
    "payments_flagged",
    "airline_names",
    "delay_by_carrier_day",
    "aircraft_turnarounds",
]
"""Views of the town: some of each kind, and all that the marts, the model and the tests ask."""


@contextmanager
def of_each_kind() -> Iterator[Path]:
    """A folder of these views. `make test` starts its platform with them: a batch run of all takes twice as long."""
    with tempfile.TemporaryDirectory() as folder:
        for view in OF_EACH_KIND:
            shutil.copy(ROOT / f"spark_jobs/views/{view}.py", folder)
        yield Path(folder)


@contextmanager
def shared(config: pytest.Config) -> Iterator[Platform]:
    """The real stack for the tests of a folder.

    Where fault tests are left out, it has some of the views, and asks Kafka for news four times a second, not twenty.
    """
    with ExitStack() as opened:
        is_sample = "not fault" in config.option.markexpr
        changes = {"views_folder": opened.enter_context(of_each_kind()), "trigger_ms": 250} if is_sample else {}
        yield opened.enter_context(running(**changes))


@contextmanager
def running(project: Path = ROOT, *parts: str, **changes: Any) -> Iterator[Platform]:
    """Start a platform of a project (or `parts` of it, with what they need); `changes` are settings.

    On leaving, stop it and see that no process is left, reset it and see that no state is.
    """
    home = Path(tempfile.mkdtemp(prefix="tidemark-"))  # pytest's folders are too deep for a unix socket
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    platform = Platform(Settings(home=home, project=project, **ports, **SMALL, **changes))
    try:
        if platform.settings.is_town:
            subprocess.run([sys.executable, "-c", OLDER_LOG], env=platform.environment, cwd=ROOT, check=True)
        platform.tidemark("up", *parts)
        yield platform
        platform.tidemark("down")
        assert platform.processes() == []
        platform.tidemark("reset", "--yes")
        assert list(home.iterdir()) == []
    finally:
        platform.run("down")  # also after a failure: the supervisor would start again what is killed
        leftovers.end(home)
        shutil.rmtree(home, ignore_errors=True)
