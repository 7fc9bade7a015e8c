"""A PostgreSQL of one's own: Debian's programs over a cluster in a temporary folder, gone on leaving.

initdb -> postgres on a free port of 127.0.0.1, with logical decoding. It refuses to run as root, and then gets another
user. The password is in a file that only its owner can read.
"""

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from infra import preflight
from infra.embedded.passwords import write_private
from infra.embedded.shadow import free_ports
from tests.platform import await_true

SUPERUSER = "postgres"
UNPRIVILEGED = ("postgres", "nobody")
OPTIONS = {"wal_level": "logical", "fsync": "off", "max_connections": "20", "shared_buffers": "32MB"}


@dataclass(frozen=True)
class Cluster:
    """A running server; its folder holds the superuser's password in a file."""

    folder: Path
    port: int

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    def connect(self) -> "psycopg.Connection[tuple[Any, ...]]":
        """As superuser; a statement is a transaction of its own unless one is begun."""
        password = self.password_file.read_text()
        where = f"host=127.0.0.1 port={self.port} dbname=postgres connect_timeout=5"
        return psycopg.connect(where, user=SUPERUSER, password=password, autocommit=True)

    def answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def running() -> Iterator[Cluster]:
    """Start a server; on leaving, stop it and remove its folder. What is missing is said, with its remedy."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="tidemark-pg-"))  # pytest's folders are closed to other users
    try:
        cluster = Cluster(folder, free_ports(1)[0])
        account = _account()
        _initialise(programs, cluster, account)
        server = _start(programs, cluster, account)
        try:
            await_true(cluster.answers, 60, f"PostgreSQL does not answer; see {folder}/log")
            yield cluster
        finally:
            server.send_signal(signal.SIGINT)  # its "fast" stop: sessions are ended, not waited for
            server.wait(60)
    finally:
        shutil.rmtree(folder)


def _programs() -> Path:
    missing = [finding.sentence() for finding in preflight.check_change_data()]
    found = preflight.postgresql_programs()
    assert found is not None, missing
    return found


def _account() -> Mapping[str, Any]:
    """What `subprocess` needs to start a program that refuses root; nothing for everybody else."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = next(known[name] for name in UNPRIVILEGED if name in known)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def _initialise(programs: Path, cluster: Cluster, account: Mapping[str, Any]) -> None:
    write_private(cluster.password_file, secrets.token_urlsafe(18))
    if account:
        for path in (cluster.folder, cluster.password_file):
            os.chown(path, account["user"], account["group"])
    command = [str(programs / "initdb"), "--pgdata", str(cluster.folder / "data"), "--username", SUPERUSER, "--no-sync"]
    command += [
        "--pwfile",
        str(cluster.password_file),
        "--auth",
        "scram-sha-256",
        "--encoding",
        "UTF8",
        "--locale",
        "C",
    ]
    done = subprocess.run(command, **account, cwd=cluster.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"initdb: {done.stdout}{done.stderr}"


def _start(programs: Path, cluster: Cluster, account: Mapping[str, Any]) -> "subprocess.Popen[str]":
    doors = {"port": cluster.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": cluster.folder}
    command = [str(programs / "postgres"), "-D", str(cluster.folder / "data")]
    command += [part for name, value in {**OPTIONS, **doors}.items() for part in ("-c", f"{name}={value}")]
    with (cluster.folder / "log").open("w") as log:
        return subprocess.Popen(command, **account, cwd=cluster.folder, stdout=log, stderr=log)
