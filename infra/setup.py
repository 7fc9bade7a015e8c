"""Build everything that Tidemark needs into the project folder: `.venv`, `.venv-airflow`, `.jars`.

lock files -> uv, Ivy -> environments -> class archives. Alone: `python3 infra/setup.py [develop]`; `develop` adds the
tools for checks, tests and benchmarks. Standard library only. It may be interrupted and run again: a finished
environment carries a stamp of its lock file, and what has its stamp is left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from infra import archives, jars, login, preflight  # noqa: E402

UV = "uv>=0.9,<1"
STAMP = ".tidemark-built"


@dataclass(frozen=True)
class Environment:
    """A virtual environment and the lock file that fills it; `installs_project` adds Tidemark itself, editable."""

    name: str
    folder: Path
    lock: Path
    installs_project: bool

    def stamp(self) -> str:
        """What the environment is made from; another lock, Python or project file means another stamp."""
        parts = [self.lock.read_bytes(), platform.python_version().encode(), str(self.folder).encode()]
        if self.installs_project:
            parts.append((ROOT / "pyproject.toml").read_bytes())
        return hashlib.sha256(b"\0".join(parts)).hexdigest()

    def built(self) -> bool:
        stamp = self.folder / STAMP
        return stamp.exists() and stamp.read_text() == self.stamp()

    def with_tools(self, wanted: bool) -> Environment:
        """With those for development where they are wanted, or are there already: a plain setup takes none away."""
        if not wanted and not (self.folder / "bin/pytest").exists():
            return self
        return replace(self, lock=self.lock.with_stem(f"{self.lock.stem}-develop"))


ENVIRONMENTS = (
    Environment("Spark environment", ROOT / ".venv", ROOT / "infra/locks/spark.txt", installs_project=True),
    Environment(
        "Airflow environment", ROOT / ".venv-airflow", ROOT / "infra/locks/airflow.txt", installs_project=False
    ),
)


def find_uv() -> str:
    """The machine's uv, or one that is fetched into a small environment of its own."""
    if found := shutil.which("uv"):
        return found
    tool = ROOT / ".setup"
    uv = tool / "bin/uv"
    if not uv.exists():
        python = str(tool / "bin/python")
        pip, bare = [python, "-m", "pip"], list[str]()
        if importlib.util.find_spec("pip"):  # this Python's own pip can fill it; installing a second takes seconds
            pip, bare = [sys.executable, "-m", "pip", "--python", python], ["--without-pip"]
        run(sys.executable, "-m", "venv", "--clear", *bare, str(tool))
        run(*pip, "install", "--quiet", "--disable-pip-version-check", UV)
    return str(uv)


def build(uv: str, environment: Environment) -> None:
    """Fill the environment exactly as locked: what is not in the lock is removed, every file's hash is checked."""
    python = environment.folder / "bin/python"
    (environment.folder / STAMP).unlink(missing_ok=True)
    if version_of(python) != platform.python_version() or not made_for(environment.folder):
        run(uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(environment.folder))
    quiet = () if sys.stderr.isatty() else ("--quiet",)
    run(uv, "pip", "sync", *quiet, "--python", str(python), "--require-hashes", str(environment.lock))
    if environment.installs_project:
        project = ("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        run(uv, "pip", "install", "--quiet", "--python", str(python), *project)
    (environment.folder / STAMP).write_text(environment.stamp())


def version_of(python: Path) -> str:
    """The version of an environment's Python; empty when it does not run."""
    try:
        code = "import platform; print(platform.python_version())"
        said = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""


def made_for(folder: Path) -> bool:
    """Whether the environment was made in this folder; scripts of one that was moved name a Python that is gone."""
    try:
        return f"VIRTUAL_ENV='{folder.resolve()}'" in (folder / "bin/activate").read_text(encoding="utf-8")
    except OSError:
        return False


def run(*command: str) -> None:
    """Run and show a tool's own output; its failure ends the setup."""
    # An environment that happens to be active, or is named so, must not be filled instead of ours.
    own = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, cwd=ROOT, env=own, check=False)
    if done.returncode != 0:
        raise SystemExit(f"setup: `{' '.join(command)}` failed (exit code {done.returncode}); run `make setup` again")


def step(number: int, what: str) -> float:
    print(f"[{number}/4] {what}", flush=True)
    return time.monotonic()


def finished(since: float) -> None:
    print(f"      done in {time.monotonic() - since:.0f} s", flush=True)


def missing(environments: Sequence[Environment]) -> list[preflight.Finding]:
    """What this machine lacks; room for what is built already is no longer needed."""
    is_built = all(environment.built() for environment in environments) and jars.PLATFORM.target.exists()
    return preflight.check_built() if is_built else preflight.check_setup()


def build_environments(environments: Sequence[Environment]) -> None:
    uv = None
    for number, environment in enumerate(environments, start=1):
        if environment.built():
            step(number, f"{environment.name}: as locked")
            continue
        began = step(number, f"{environment.name} from {environment.lock.relative_to(ROOT)}")
        uv = uv or find_uv()
        build(uv, environment)
        finished(began)


def fetch_jars() -> None:
    began = step(3, "jars from infra/locks/jars.lock")
    try:
        fetched = jars.sync()
        if not (login.compile_class() or fetched):
            print("      as locked")
            return
    except (jars.JarError, login.LoginError) as error:
        raise SystemExit(f"setup: {error}") from error
    finished(began)


def archive_classes() -> None:
    """What the platform starts faster with, and runs without."""
    began = step(4, "class archives of the platform's JVMs")
    try:
        if not archives.sync():
            print("      of these jars")
            return
    except archives.ArchiveError as error:
        print(f"note: no class archives, so each JVM starts some seconds later: {error}", file=sys.stderr)
    finished(began)


def main(arguments: list[str]) -> int:
    """Preflight, both environments, the jars, the archives; exit code 1 with what is missing."""
    parser = argparse.ArgumentParser(prog="setup.py", description="Build what Tidemark needs into this folder.")
    parser.add_argument("tools", nargs="?", choices=["develop"], help="with the tools for checks, tests, benchmarks")
    parser.add_argument("--no-archives", action="store_true", help="for an image: `python -m infra.archives` is later")
    wanted = parser.parse_args(arguments)
    environments = [environment.with_tools(wanted.tools is not None) for environment in ENVIRONMENTS]
    if preflight.tell(missing(environments)) != 0:
        return 1
    build_environments(environments)
    fetch_jars()
    if not wanted.no_archives:
        archive_classes()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
