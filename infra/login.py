"""Compile the class by which the Thrift server checks a login: HiveServer2 has a place for one, and none that fits.

PasswordLogin.scala -> scalac, which PySpark brings along -> `.jars/login.jar`. Alone: `python3 infra/login.py`.
Standard library only. A runtime of Java is enough.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from spark_jobs.storage.java import find_java  # noqa: E402

SOURCE = ROOT / "infra/PasswordLogin.scala"
JAR = ROOT / ".jars/login.jar"


class LoginError(RuntimeError):
    """The class could not be compiled; the message has the compiler's last words."""


def compile_class() -> bool:
    """Make the jar where it is not of this source; False when it was so already."""
    if JAR.exists() and JAR.stat().st_mtime >= SOURCE.stat().st_mtime:
        return False
    jars = next((ROOT / ".venv").glob("lib*/python*/site-packages/pyspark/jars"))
    incoming = JAR.with_stem("login.incoming")
    compiler = (str(find_java()), "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*", "scala.tools.nsc.Main")
    command = [*compiler, "-usejavacp", "-nowarn", "-d", str(incoming), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LoginError((done.stdout + done.stderr)[-4000:])
    incoming.rename(JAR)
    return True


if __name__ == "__main__":
    print("compiled" if compile_class() else "as its source")
