"""A second platform beside this one, to be disturbed and thrown away: same project, everything else its own.

settings -> others (home `drill` in ours, free ports, a small broker, no Airflow) -> processes that know no others. What
they send, land and publish cannot reach this platform: they know neither its Kafka nor its warehouse nor its ledger.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from random import SystemRandom

from infra.embedded import leftovers
from spark_jobs.settings import FOLDERS, ROOT, Settings

LIKE_OURS = (
    "project",
    *FOLDERS,
    "oracle",
    "cores",
    "topic_partitions",
    "max_records_per_batch",
    "id_window_seconds",
    "id_window_max_ids",
    "horizon_days",
    "stretch_max_rows",
)
"""What decides answers, or is about the project and the machine."""
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
"""For minutes of work with few rows the optimising compiler and threads of a collector cost more than they save."""
SMALL = {
    "speed_memory_mb": 768,
    "thrift_memory_mb": 768,
    "batch_memory_mb": 768,
    "metastore_memory_mb": 256,
    "kafka_memory_mb": 256,
    "server_java_options": SHORT_LIVED,
}
PARTS = ("broker", "thrift")
"""What is supervised; the speed application is started by whoever kills it."""
SPEED = "speed"
PORTS = tuple(name for name in Settings.model_fields if name.endswith("_port"))
FREE = range(20_000, 32_768)
"""Above the doors of a platform that nobody set, below what systems give to clients, which take any port of theirs."""
TIDEMARK = str(Path(sys.executable).with_name("tidemark"))
Done = subprocess.CompletedProcess[str]


def settings_beside(ours: Settings) -> Settings:
    """Every setting has its default, whatever our environment says, but for those above, the home and the ports."""
    defaults = {name: field.default for name, field in Settings.model_fields.items()}
    own = {"home": ours.shadow_home} | dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    return Settings(**(defaults | {name: getattr(ours, name) for name in LIKE_OURS} | SMALL | own))


def free_ports(number: int) -> list[int]:
    """Ports of FREE that nobody listens on now, all different, drawn anew by each call and process."""
    return list(islice(filter(_is_free, SystemRandom().sample(FREE, len(FREE))), number))


def _is_free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


class Shadow:
    """The platform below `settings.home`; every method starts a process with its settings and none of ours."""

    def __init__(self, ours: Settings) -> None:
        self.settings = settings_beside(ours)
        self._own_expectations = ours.expectations

    @property
    def environment(self) -> dict[str, str]:
        known = [name for name in Settings.model_fields if getattr(self.settings, name) is not None]
        others = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        return others | self.settings.environment(*known)

    def run(self, *arguments: str, also: Mapping[str, str] | None = None) -> Done:
        """`tidemark ARGUMENTS`, whatever its exit code."""
        command = [TIDEMARK, *arguments]
        own = self.environment | dict(also or {})
        return subprocess.run(command, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def prepare(self) -> None:
        """Remove what an earlier one left, and take over this installation's own expectations."""
        self.remove()
        self.settings.home.mkdir(mode=0o700)
        if self._own_expectations.is_dir():
            shutil.copytree(self._own_expectations, self.settings.expectations)

    def application(self, module: str, in_process: bool) -> "subprocess.Popen[bytes]":
        """The speed application, by a module that runs it. in_process: small micro-batches stay in the driver."""
        way = {} if in_process else {"TIDEMARK_IN_PROCESS_RECORDS": "0"}
        mark = {leftovers.MARK: SPEED}  # so that `reset` finds it, and its JVM
        with (self.settings.log_dir / f"{SPEED}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module],
                env=self.environment | way | mark,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def remove(self) -> None:
        """End its processes, and remove its folder."""
        if self.settings.home.exists():
            self.run("reset", "--yes")
            leftovers.end(self.settings.home)
            shutil.rmtree(self.settings.home, ignore_errors=True)

    def remove_later(self) -> None:
        """The same by a process of its own, which outlives this one and its group."""
        none = subprocess.DEVNULL
        subprocess.Popen(
            [TIDEMARK, "reset", "--yes"],
            env=self.environment,
            stdin=none,
            stdout=none,
            stderr=none,
            start_new_session=True,
        )
