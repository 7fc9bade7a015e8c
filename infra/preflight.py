"""What this machine lacks to build or run Tidemark, and the command that installs it.

machine -> [Finding]. Alone: `python3 infra/preflight.py`. Standard library only, and readable by old Pythons: it runs
before any environment exists, and again in `tidemark up`.
"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from spark_jobs.storage.java import NoJava, find_java  # noqa: E402

PYTHON = (3, 11)
SETUP_DISK_GB = 6
RUN_DISK_GB = 3
# What an 8 GB machine reports after its firmware took its share.
MEMORY_GB = 7

INSTALL = {
    "java": {
        "debian": "sudo apt-get install -y openjdk-17-jre-headless",
        "fedora": "sudo dnf install -y java-17-openjdk-headless",
        "macos": "brew install openjdk@17",
    },
    "python": {
        "debian": "sudo apt-get install -y python3.11 python3.11-venv",
        "fedora": "sudo dnf install -y python3.11",
        "macos": "brew install python@3.11",
    },
    "venv": {
        "debian": "sudo apt-get install -y python3-venv",
        "fedora": "sudo dnf install -y python3",
        "macos": "brew install python@3.11",
    },
    "postgresql": {
        "debian": "sudo apt-get install -y postgresql",
        "fedora": "sudo dnf install -y postgresql-server",
        "macos": "brew install postgresql@17",
    },
}


@dataclass(frozen=True)
class Finding:
    """One thing that is missing, and what to do about it."""

    what: str
    remedy: str
    blocking: bool = True

    def sentence(self) -> str:
        return f"{self.what}. {self.remedy}"


def family() -> str:
    """debian, fedora or macos; debian where it cannot be told."""
    if sys.platform == "darwin":
        return "macos"
    try:
        release = Path("/etc/os-release").read_text()
    except OSError:
        return "debian"
    return "fedora" if any(name in release for name in ("fedora", "rhel", "suse")) else "debian"


def install(what: str) -> str:
    """The command for this machine first, then those for the others."""
    commands = dict(INSTALL[what])
    own = commands.pop(family())
    return f"Install it: `{own}`" + "".join(f"; {name}: `{command}`" for name, command in commands.items())


def check_built() -> list[Finding]:
    """What the environments need once they are there: Python, venv, Java, memory."""
    return [*_python(), *_java(), *_memory()]


def check_setup(folder: Path = ROOT) -> list[Finding]:
    """What building the environments needs: the same, and disk."""
    return [*check_built(), *_disk(folder, SETUP_DISK_GB)]


def check_running(home: Path, host: str, ports: Mapping[str, int], *, ran_before: bool = False) -> list[Finding]:
    """What starting the platform needs; `ports` are settings' names and their values.

    Little disk does not stop one that ran before: only while it runs does it expire and remove what is old.
    """
    disk = [replace(found, blocking=not ran_before) for found in _disk(home, RUN_DISK_GB)]
    return [*_java(), *disk, *_memory(), *_ports(host, ports)]


def check_change_data() -> list[Finding]:
    """What the test of change data needs beyond the platform: PostgreSQL's server."""
    if postgresql_programs() is not None:
        return []
    return [Finding("The test of change data needs PostgreSQL (no initdb is here)", install("postgresql"))]


def postgresql_programs() -> Path | None:
    """The folder of the newest PostgreSQL's server programs: where Debian puts them, else by PATH."""
    versions = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if versions:
        return max(versions, key=lambda folder: float(folder.parent.name))
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def _python() -> list[Finding]:
    if sys.version_info < PYTHON:
        return [Finding(f"This is Python {platform.python_version()}; Tidemark needs 3.11 or newer", install("python"))]
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return [Finding("This Python cannot make virtual environments (no ensurepip)", install("venv"))]
    return []


def _java() -> list[Finding]:
    try:
        find_java()
    except NoJava as error:
        return [Finding(f"Tidemark needs Java 17: {error}", install("java"))]
    return []


def _disk(folder: Path, needed_gb: int) -> list[Finding]:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free_gb = shutil.disk_usage(existing).free / 1e9
    if free_gb >= needed_gb:
        return []
    return [
        Finding(f"{existing} has {free_gb:.1f} GB free, {needed_gb} GB are needed", "Make room, or use another disk.")
    ]


def _memory() -> list[Finding]:
    total_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    if total_gb >= MEMORY_GB:
        return []
    remedy = "It may be slow or be stopped by the system; lower the TIDEMARK_*_MEMORY_MB settings."
    return [Finding(f"This machine has {total_gb:.1f} GB of memory, the platform uses up to 8", remedy, blocking=False)]


def _ports(host: str, ports: Mapping[str, int]) -> list[Finding]:
    return [finding for name, port in ports.items() for finding in _port(host, name, port)]


def _port(host: str, name: str, port: int) -> list[Finding]:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # closed connections may linger
        try:
            probe.bind((host, port))
        except OSError as error:
            what = f"Port {port} on {host} ({name}) is not free: {holder(port) or error.strerror}"
            return [Finding(what, f"Stop what holds it, or set TIDEMARK_{name.upper()} to another port.")]
    return []


def holder(port: int) -> str:
    """`java (pid 12)` for whoever listens on `port`; empty where it cannot be told (another user's, no psutil)."""
    try:
        import psutil
    except ImportError:
        return ""
    for process in psutil.process_iter():
        try:
            held = {
                connection.laddr.port for connection in process.net_connections("tcp") if connection.status == "LISTEN"
            }
            if port in held:
                return f"held by {process.name()} (pid {process.pid})"
        except psutil.Error:
            continue
    return ""


def tell(findings: Sequence[Finding]) -> int:
    """Print what is missing; exit code 1 when it cannot go on."""
    for finding in findings:
        print(f"{'missing' if finding.blocking else 'note'}: {finding.sentence()}", file=sys.stderr)
    return int(any(finding.blocking for finding in findings))


if __name__ == "__main__":
    sys.exit(tell(check_setup()))
