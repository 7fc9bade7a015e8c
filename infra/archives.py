"""The classes of the platform's JVMs, parsed and verified once and kept in files that each start maps (AppCDS).

environments and jars -> infra.embedded.recording -> `.jars/archives/<class path>.jsa`, beside a stamp of what they were
made from. Without them everything works, and starts later. Alone: `python -m infra.archives`. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from spark_jobs.storage.java import ARCHIVES, RECORD, find_java

ROOT = Path(__file__).resolve().parent.parent
STAMP = "stamp"
RECORDER = ROOT / "infra/embedded/recording.py"


class ArchiveError(RuntimeError):
    """The platform's programs did not run, or not to their end; the message has their last words."""


def stamp() -> str:
    """What the archives are made from: Java, the jars as a JVM tells them apart (size, second of change), recorder."""
    java = subprocess.run([str(find_java()), "-version"], capture_output=True, text=True, check=True).stderr
    jars = (f"{jar} {jar.stat().st_size} {int(jar.stat().st_mtime)}" for jar in sorted(_jars()))
    return hashlib.sha256("\n".join([java, *jars, RECORDER.read_text()]).encode()).hexdigest()


def _jars() -> Iterator[Path]:
    yield from (ROOT / ".jars").glob("*/*.jar")
    yield ROOT / ".jars/login.jar"
    yield from (ROOT / ".venv").glob("lib*/python*/site-packages/pyspark/jars/*.jar")


def sync() -> bool:
    """Make the archives anew where they are not of these jars and this Java; False when they were so already."""
    made_from = stamp()
    kept = ARCHIVES / STAMP
    if kept.exists() and kept.read_text() == made_from:
        return False
    incoming = ARCHIVES.with_name(f"{ARCHIVES.name}.incoming")
    for folder in (ARCHIVES, incoming):
        shutil.rmtree(folder, ignore_errors=True)
    incoming.mkdir()
    own = {name: value for name, value in os.environ.items() if not name.startswith("TIDEMARK_")}
    recorder = [str(ROOT / ".venv/bin/python"), "-m", "infra.embedded.recording"]
    recording = own | {RECORD: str(incoming)}
    done = subprocess.run(recorder, cwd=ROOT, env=recording, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ArchiveError((done.stdout + done.stderr)[-4000:])
    (incoming / STAMP).write_text(made_from)
    incoming.rename(ARCHIVES)
    return True


def main() -> int:
    """Exit code 1 with the recorder's last words on stderr."""
    try:
        print("classes archived" if sync() else "archives are of these jars")
    except ArchiveError as error:
        print(f"archives: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
