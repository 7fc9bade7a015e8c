"""supervisord: its configuration, its start, and its XML-RPC interface over a unix socket.

[Program] -> `home`/run/supervisord.conf -> supervisord -> Supervisor (start, stop, states). No TCP port.
"""

import os
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from infra.embedded.passwords import write_private
from infra.embedded.program import Program
from spark_jobs.settings import FILES, FOLDERS, ROOT, Settings

# A unix socket's path has 104 bytes on macOS, 108 on Linux, with the final zero.
LONGEST_SOCKET = 103
LOG_BYTES = "20MB"
LOG_BACKUPS = 3
# A part counts as started when it has lived this long; one that dies earlier is started again after 1, 2, 3 ... s.
START_SECONDS = 5
START_RETRIES = 30
NO_SUCH_PROCESS, NOT_RUNNING, ALREADY_STARTED = 10, 70, 60


class SupervisorError(RuntimeError):
    """supervisord cannot be started, does not answer, or is not what starts the parts."""


@dataclass(frozen=True)
class State:
    """What supervisord says of one program: RUNNING, STARTING, BACKOFF, STOPPED, FATAL, ..."""

    name: str
    state: str
    pid: int
    started_at: float
    said: str


def socket_file(settings: Settings) -> Path:
    return settings.run_dir / "supervisor.sock"


def require(settings: Settings, instead: str) -> None:
    """Raises SupervisorError where the parts are containers; `instead` is what to tell their engine."""
    if settings.supervisor == "compose":
        raise SupervisorError(f"the parts run in containers; say `docker compose {instead}` where they run")


def log_file(settings: Settings, program: str) -> Path:
    return settings.log_dir / f"{program}.log"


def configuration(settings: Settings, programs: Sequence[Program]) -> str:
    """supervisord.conf; nothing in it is secret, and no program starts by itself: `up` knows the order."""
    run, log = settings.run_dir, settings.log_dir
    sections: dict[str, dict[str, object]] = {
        "unix_http_server": {"file": socket_file(settings), "chmod": "0700"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
        "supervisord": {
            "pidfile": run / "supervisord.pid",
            "logfile": log / "supervisord.log",
            "logfile_maxbytes": LOG_BYTES,
            "logfile_backups": LOG_BACKUPS,
            "childlogdir": log,
            "directory": ROOT,
            "umask": "077",
        },
    }
    sections |= {f"program:{program.name}": _section(settings, program) for program in programs}
    lines = []
    for name, options in sections.items():
        lines += [f"[{name}]", *(f"{key}={_escape(value)}" for key, value in options.items()), ""]
    return "\n".join(lines)


def _section(settings: Settings, program: Program) -> dict[str, object]:
    return {
        "command": f'"{sys.executable}" -m infra.embedded.launch {program.name}',
        "directory": ROOT,
        "autostart": "false",
        "autorestart": "true",
        "startsecs": START_SECONDS,
        "startretries": START_RETRIES,
        "stopasgroup": "true",
        "killasgroup": "true",
        "stopwaitsecs": program.stop_within,
        "redirect_stderr": "true",
        "stdout_logfile": log_file(settings, program.name),
        "stdout_logfile_maxbytes": LOG_BYTES,
        "stdout_logfile_backups": LOG_BACKUPS,
    }


def _escape(value: object) -> str:
    return str(value).replace("%", "%%")


class Supervisor:
    """A running supervisord."""

    def __init__(self, settings: Settings) -> None:
        from supervisor.xmlrpc import SupervisorTransport

        transport = SupervisorTransport(None, None, f"unix://{socket_file(settings)}")
        self._rpc = xmlrpc.client.ServerProxy("http://localhost", transport=transport)

    def states(self) -> dict[str, State]:
        """Program name -> state."""
        every = self._rpc.supervisor.getAllProcessInfo()
        assert isinstance(every, list)
        return {
            info["name"]: State(
                info["name"],
                info["statename"],
                info["pid"],
                float(info["start"]),
                info["spawnerr"] or info["description"],
            )
            for info in every
        }

    def start(self, program: str) -> None:
        """Ask for a start and return; one that runs is left alone."""
        self._call("startProcess", program, ALREADY_STARTED)

    def stop(self, program: str) -> None:
        """Ask for a stop and return; one that does not run is left alone."""
        self._call("stopProcess", program, NOT_RUNNING)

    def _call(self, method: str, program: str, harmless: int) -> None:
        try:
            getattr(self._rpc.supervisor, method)(program, False)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode == NO_SUCH_PROCESS:
                raise SupervisorError(
                    f"supervisord knows no program {program!r}; run `tidemark down`, then `up`"
                ) from fault
            if fault.faultCode != harmless:
                raise

    def shutdown(self) -> None:
        self._rpc.supervisor.shutdown()


def running(settings: Settings) -> Supervisor | None:
    """The supervisord of this home, None when there is none that answers."""
    try:
        supervisor = Supervisor(settings)
        supervisor.states()
    except (OSError, xmlrpc.client.Error, ValueError):
        return None
    return supervisor


def start(settings: Settings, programs: Sequence[Program]) -> None:
    """Start supervisord as a daemon and wait until it answers."""
    if len(str(socket_file(settings)).encode()) > LONGEST_SOCKET:
        raise SupervisorError(
            f"{socket_file(settings)} is too long for a unix socket; set TIDEMARK_HOME to a shorter path"
        )
    for folder in (settings.home, settings.run_dir, settings.log_dir, settings.tmp_dir):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file = settings.run_dir / "supervisord.conf"
    write_private(file, configuration(settings, programs))
    command = [str(Path(sys.executable).with_name("supervisord")), "-c", str(file)]
    own = {**os.environ, **settings.environment("home", "project", *FOLDERS, *FILES)}  # the parts work in other folders
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SupervisorError(f"supervisord does not start: {(done.stdout + done.stderr).strip()}")
    for _ in range(100):
        if running(settings):
            return
        time.sleep(0.1)
    raise SupervisorError(f"supervisord does not answer; see {settings.log_dir / 'supervisord.log'}")
