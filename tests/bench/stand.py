"""A platform to measure on: chosen parts, a home of its own, deleted afterwards.

settings -> `tidemark up PARTS` -> measurements -> `tidemark down`.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infra.embedded import leftovers
from infra.embedded.shadow import PORTS, free_ports
from spark_jobs.settings import ROOT, Settings
from tests.bench.cpu import Meter, Span
from tests.platform import Platform

PEER = "peer"


class Stand(Platform):
    """A platform with every setting that differs from the default in its environment."""

    @property
    def environment(self) -> dict[str, str]:
        others = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        own = self.settings.model_dump(exclude_unset=True, exclude_computed_fields=True)
        return others | {f"TIDEMARK_{name.upper()}": str(value) for name, value in own.items()}

    def measured(self, command: list[str], said: Path, others: dict[str, str] | None = None) -> Span:
        """A command under this stand's settings, from one moment to another that it writes to the file `said`."""
        marked = self.environment | {leftovers.MARK: PEER} | (others or {})
        with Meter(lambda: self.processes(PEER)) as meter:
            done = subprocess.run(command, env=marked, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {(done.stdout + done.stderr)[-4000:]}"
        moments = json.loads(said.read_text())
        return meter.span(moments["began_at"], moments["ended_at"])


def lag(place: Platform) -> int | None:
    """Unread records; None until a first micro-batch has landed."""
    state = place.heartbeat()
    return state.get("lag") if state.get("lsn") else None


@contextmanager
def stand(*parts: str, **changes: Any) -> Iterator[Stand]:
    """A platform of which `parts` (and what they need) run; `changes` are settings."""
    home = Path(tempfile.mkdtemp(prefix="tidemark-bench-"))
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    made = Stand(Settings(home=home, **{**ports, **changes}))
    try:
        made.tidemark("up", *parts)
        yield made
    finally:
        made.run("down")  # also after a failure: the supervisor would start again what is killed
        leftovers.end(home)
        shutil.rmtree(home, ignore_errors=True)
