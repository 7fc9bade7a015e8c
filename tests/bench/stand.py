"""A platform to measure on: chosen parts, a home of its own, deleted afterwards.

settings -> `tidemark up PARTS` -> measurements -> `tidemark down`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from infra.embedded import leftovers
from spark_jobs.settings import ROOT, Settings
from tests.platform import PORTS, Platform, free_ports


class Stand(Platform):
    """A platform with every setting that differs from the default in its environment."""

    @property
    def environment(self) -> dict[str, str]:
        others = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
        own = self.settings.model_dump(exclude_unset=True, exclude_computed_fields=True)
        return others | {f"TIDEMARK_{name.upper()}": str(value) for name, value in own.items()}

    def python(self, *arguments: str) -> None:
        """A Python module of the bench in a process of its own, under this stand's settings."""
        subprocess.run([sys.executable, "-m", *arguments], env=self.environment, cwd=ROOT, check=True)


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
