"""Find and end processes of a platform that its supervisor no longer holds.

Every supervised process and whatever it starts carries TIDEMARK_HOME and TIDEMARK_PROGRAM in its environment. When a
process is killed, its children live on under another parent, sometimes in another process group (a JVM below its
Python, Airflow's tasks), so a group is not enough to find them.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import psutil

MARK = "TIDEMARK_PROGRAM"


def marked(home: Path, program: str | None = None) -> Iterator[psutil.Process]:
    """Living processes of the platform at `home` (of one program, if named), except this one and its ancestors."""
    own = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid not in own and _belongs(process, home, program):
            yield process


def _belongs(process: psutil.Process, home: Path, program: str | None) -> bool:
    try:
        environment = process.environ()
        living: bool = process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OSError):  # gone meanwhile, or another user's
        return False
    name = environment.get(MARK)
    return living and environment.get("TIDEMARK_HOME") == str(home) and name is not None and program in (None, name)


def end(home: Path, program: str | None = None) -> list[str]:
    """Kill them, and wait until they are gone; the answer is what was found (`pid name`)."""
    found = list(marked(home, program))
    said = []
    for process in found:
        try:
            said.append(f"{process.pid} {process.name()}")
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(found, timeout=10)
    return said
