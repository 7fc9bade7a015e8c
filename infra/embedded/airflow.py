"""Airflow's four processes, in their own environment, over SQLite.

settings + passwords -> airflow.cfg (0600) -> api-server, scheduler, dag-processor, triggerer.
"""

import configparser
import fcntl
import io
import json
import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from infra.embedded.airflow_connections import connections
from infra.embedded.passwords import passwords, write_private
from infra.embedded.program import Program
from infra.embedded.readiness import airflow_answers
from spark_jobs.orchestration.interface import COMMAND_VARIABLE, MAIL_TO_VARIABLE, WEBHOOK_VARIABLE
from spark_jobs.settings import ROOT, Settings

BIN = ROOT / ".venv-airflow/bin"
POOLS = ROOT / "infra/airflow/pools.json"
MIGRATE = ROOT / "infra/airflow/migrate.py"
ADMIN = "admin"
CONNECTIONS = "connections.json"
PARALLEL_TASKS = 3
WORKERS = {
    # How long an ended task may go unnoticed; 5 s by default, for each task.
    "min_heartbeat_interval": "1",
    # Tasks wait about 80 s for an API server that is not up yet or again, by default 13 to 31 and are red then.
    "execution_api_retries": "20",
    "execution_api_retry_wait_max": "8",
}
READ_BY_DAGS = (
    "views_folder",
    "schemas_folder",
    "batch_schedule",
    "rebuild_schedule",
    "schedule_timezone",
    "task_hours",
)

# Program name -> (arguments of `airflow`, name in the health report). Each scheduler and triggerer would serve task
# logs on every address; the API server reads the same files, so that door stays shut.
PARTS = {
    "airflow-api": (("api-server",), "metadatabase"),
    "airflow-scheduler": (("scheduler", "--skip-serve-logs"), "scheduler"),
    "airflow-dag-processor": (("dag-processor",), "dag_processor"),
    "airflow-triggerer": (("triggerer", "--skip-serve-logs"), "triggerer"),
}


def programs(settings: Settings) -> list[Program]:
    return [
        Program(
            name=name,
            command=(str(BIN / "airflow"), *arguments),
            ready=partial(airflow_answers, settings.airflow_url, part),
            ports=("airflow_port",) if name == "airflow-api" else (),
            environment=environment(settings),
            prepare=partial(prepare, settings),
            patience=180,
            stop_within=25,
        )
        for name, (arguments, part) in PARTS.items()
    ]


def environment(settings: Settings) -> dict[str, str]:
    """For Airflow itself, and for its tasks, which call the `tidemark` command of the Spark environment."""
    return {
        "AIRFLOW_HOME": str(settings.airflow_dir),
        "AIRFLOW_CONFIG": str(settings.airflow_dir / "airflow.cfg"),
        COMMAND_VARIABLE: str(ROOT / ".venv/bin/tidemark"),
        "PYTHONPATH": str(ROOT),  # for spark_jobs.orchestration.interface
        "SPT_NOENV": "1",  # process titles must not overwrite the environment, by which `down` finds Airflow's tasks
        "SCARF_ANALYTICS": "false",
        "NO_COLOR": "1",
        **settings.environment(*READ_BY_DAGS),
        **{name: str(told) for name, told in _receivers(settings).items() if told},
    }


def _receivers(settings: Settings) -> dict[str, object]:
    """Whom Airflow's notifiers tell of alarms."""
    return {MAIL_TO_VARIABLE: settings.alarms_mail_to, WEBHOOK_VARIABLE: settings.alarms_webhook_file}


def configuration(settings: Settings, secret: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Section -> option -> value of airflow.cfg."""
    home = settings.airflow_dir
    return {
        "core": {
            "dags_folder": str(ROOT / "dags"),
            "plugins_folder": str(ROOT / "infra/airflow/plugins"),
            "load_examples": "False",
            "executor": "LocalExecutor",
            "parallelism": str(PARALLEL_TASKS),
            "dags_are_paused_at_creation": "False",
            "hostname_callable": "socket.gethostname",
            "fernet_key": secret["airflow_fernet_key"],
            "simple_auth_manager_users": f"{ADMIN}:admin",
            "simple_auth_manager_passwords_file": str(home / "passwords.json"),
            "execution_api_server_url": f"{settings.airflow_url}/execution/",
        },
        "database": _database(settings),
        "api": {
            "host": settings.host,
            "port": str(settings.airflow_port),
            "base_url": settings.airflow_page,
            "workers": "1",
            "instance_name": "Tidemark",
            "secret_key": secret["airflow_api_secret"],
        },
        "secrets": {
            "backend": "airflow.secrets.local_filesystem.LocalFilesystemBackend",
            "backend_kwargs": json.dumps({"connections_file_path": str(home / CONNECTIONS)}),
        },
        "api_auth": {"jwt_secret": secret["airflow_jwt_secret"]},
        "dag_processor": {"parsing_processes": "1", "refresh_interval": "30", "min_file_process_interval": "30"},
        "scheduler": {"task_instance_heartbeat_timeout": "60", "orphaned_tasks_check_interval": "60"},
        "triggerer": {"capacity": "100"},
        "workers": WORKERS,
        "logging": {"base_log_folder": str(home / "logs"), "colored_console_log": "False"},
        "usage_data_collection": {"enabled": "False"},
    }


def _database(settings: Settings) -> dict[str, str]:
    """SQLite on one machine; PostgreSQL elsewhere, whose drivers read the password from PGPASSFILE."""
    if settings.airflow_database_url is None:
        file = f"{settings.airflow_dir}/airflow.db?timeout=60"
        return {"sql_alchemy_conn": f"sqlite:///{file}", "sql_alchemy_conn_async": f"sqlite+aiosqlite:///{file}"}
    at = settings.airflow_database_url.removeprefix("postgresql")
    return {"sql_alchemy_conn": f"postgresql+psycopg2{at}", "sql_alchemy_conn_async": f"postgresql+asyncpg{at}"}


def prepare(settings: Settings) -> None:
    """Write configuration and login, migrate the database; the first of the four does it, the others wait."""
    home = settings.airflow_dir
    home.mkdir(parents=True, exist_ok=True)
    with (home / "prepare.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        secret = passwords(settings)
        write_private(home / "airflow.cfg", _render(configuration(settings, secret)))
        write_private(home / CONNECTIONS, json.dumps(connections(settings)))
        write_private(home / "passwords.json", json.dumps({ADMIN: secret["airflow_admin_password"]}))
        _migrate(settings)


def _migrate(settings: Settings) -> None:
    """Bring the database to the installed version, with the pools that the DAGs need; once for each version of both."""
    stamp = settings.airflow_dir / "migrated"
    locked = (ROOT / "infra/locks/airflow.txt").read_bytes() + POOLS.read_bytes()
    if stamp.exists() and stamp.read_bytes() == locked:
        return
    subprocess.run([BIN / "python", MIGRATE, POOLS], env={**os.environ, **environment(settings)}, check=True)
    if settings.airflow_database_url is None:
        _write_ahead(settings)
    stamp.write_bytes(locked)


def _write_ahead(settings: Settings) -> None:
    with closing(sqlite3.connect(settings.airflow_dir / "airflow.db")) as database:
        database.execute("pragma journal_mode = wal")  # readers and the writer do not wait for each other


class CleanFailed(Exception):
    """Airflow did not clean its database; the text is what it said last."""


def clean(settings: Settings) -> int:
    """Remove what is older than `airflow_kept_days` from Airflow's database, and log files; returns how many files."""
    before = datetime.now(UTC) - timedelta(days=settings.airflow_kept_days)
    arguments = ("db", "clean", "--clean-before-timestamp", before.isoformat(), "--skip-archive", "--yes")
    command = (str(BIN / "airflow"), *arguments)
    done = subprocess.run(
        command, env={**os.environ, **environment(settings)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CleanFailed(f"`airflow db clean` ended with exit code {done.returncode}: {done.stderr[-2000:]}")
    return remove_logs(settings.airflow_dir / "logs", before)


def remove_logs(folder: Path, before: datetime) -> int:
    """Remove log files that are older, and what is empty then, up to `folder`; returns how many files.

    An empty folder that is young stays: a task may be about to write into it.
    """
    old = [path for path in folder.rglob("*") if path.lstat().st_mtime < before.timestamp()]
    logs = [path for path in old if path.suffix == ".log" and path.is_file()]
    emptied = {parent for log in logs for parent in log.parents if parent.is_relative_to(folder)} - {folder}
    for log in logs:
        log.unlink()
    for path in sorted({path for path in old if path.is_dir()} | emptied, reverse=True):  # the inner ones come first
        with suppress(OSError):  # it has others
            path.rmdir()
    return len(logs)


def _render(sections: Mapping[str, Mapping[str, str]]) -> str:
    parser = configparser.RawConfigParser()
    for section, options in sections.items():
        parser[section] = {option: value.replace("%", "%%") for option, value in options.items()}
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()
