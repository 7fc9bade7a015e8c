"""The part of a drill that touches the live platform, and only where it is asked to: its speed application is killed.

heartbeat -> SIGKILL -> the supervisor's own restart -> heartbeat of another process -> verify I1 and I4
"""

import json
import socket
import subprocess
import time
from typing import Any

import psutil

from infra.embedded.shadow import TIDEMARK
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.settings import Settings
from spark_jobs.speed.status import COMPONENT, health

PATIENCE_SECONDS = 600.0
CHECKED = ("I1", "I4")


def victim(here: Settings, store: Store) -> psutil.Process:
    """The live speed application. Raises LedgerError where nobody would start it again, or it does not live here."""
    if here.supervisor != "supervisord":
        raise LedgerError("the live speed application runs in a container: kill it there, by the engine of containers")
    state = health(store)
    if not state["is_alive"] or state["state"] != "running":
        raise LedgerError(f"the live speed application is not running ({state['state']}): nothing is killed")
    if state["host"] != socket.gethostname():
        raise LedgerError(f"the live speed application runs on {state['host']}: drill there")
    return psutil.Process(state["pid"])


def killed(here: Settings, store: Store) -> dict[str, Any]:
    """Kill it, wait until another one has read everything; its lsns, seconds, and whether the log is whole."""
    process, before = victim(here, store), health(store)["lsn"]
    began = time.monotonic()
    process.kill()
    while not _is_back(store, process.pid):
        if time.monotonic() - began > PATIENCE_SECONDS:
            raise LedgerError("the live speed application does not come back: `tidemark logs speed`")
        time.sleep(0.5)
    seconds = round(time.monotonic() - began, 1)
    return {"before": before, "after": health(store)["lsn"], "seconds": seconds, "findings": _findings()}


def _is_back(store: Store, pid: int) -> bool:
    beat = store.heartbeat(COMPONENT)
    state = beat.payload if beat else {}
    return state.get("pid") != pid and state.get("state") == "running" and state.get("lag") == 0


def _findings() -> list[dict[str, Any]]:
    only = [word for invariant in CHECKED for word in ("--only", invariant)]
    command = [TIDEMARK, "verify", "--json", *only]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        findings: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError as error:
        raise LedgerError(f"the live platform could not be verified: {done.stderr.strip()}") from error
    return findings
