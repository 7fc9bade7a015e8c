"""Find a Java 17: JAVA_HOME first, then PATH, then the places where package managers put it.

environment -> path of a `java` program. Standard library only: it runs before any environment exists.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

# Spark 4.1 runs on 17 and 21; the platform is tested on 17.
SUPPORTED = (17, 21)
USUAL_PLACES = (
    "/usr/lib/jvm/*17*",
    "/usr/lib/jvm/*21*",
    "/Library/Java/JavaVirtualMachines/*17*/Contents/Home",
    "/opt/homebrew/opt/openjdk@17",
    "/usr/local/opt/openjdk@17",
)


class NoJava(RuntimeError):
    """No Java of a supported version on this machine; the message says what was found."""


def candidates() -> Iterator[Path]:
    """Every `java` that may be meant, the most explicit first."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin/java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for pattern in USUAL_PLACES:
        yield from sorted(path / "bin/java" for path in Path("/").glob(pattern.lstrip("/")))


def version_of(java: Path) -> int | None:
    """The feature version (17) of a `java` program, None when it does not run."""
    try:
        said = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False, timeout=60).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)', said)
    return int(match.group(1)) if match else None


@cache
def find_java() -> Path:
    """The first supported `java`; raises NoJava with what was found instead."""
    refused = []
    for path in candidates():
        version = version_of(path)
        if version in SUPPORTED:
            return path
        if version is not None:
            refused.append(f"{path} is Java {version}")
    raise NoJava("; ".join(refused) or "no java program on PATH, and JAVA_HOME is not set")


def java_home() -> Path:
    """What JAVA_HOME must be for that Java."""
    return find_java().resolve().parent.parent
