"""Find a Java 17: JAVA_HOME first, then PATH, then the places where package managers put it. And how ours are started.

environment -> path of a `java` program, options. Standard library only: it runs before any environment exists.
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


ARCHIVES = Path(__file__).resolve().parent.parent.parent / ".jars/archives"
RECORD = "TIDEMARK_RECORD_CLASSES"
"""The variable with the folder to which a JVM of ours writes its classes as it ends; infra.archives sets it."""


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


def behind(java: Path) -> Path | None:
    """The program of the JDK that `java` starts: itself, or another where it is a shim (asdf, jenv, mise).

    None where neither it nor Java's own answer leads to one.
    """
    if (java.resolve().parent.parent / "bin/java").exists():
        return java
    command = [str(java), "-XshowSettings:properties", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stderr
    home = re.search(r"^\s*java\.home = (.+)$", said, re.MULTILINE)
    if home is None or not (program := Path(home.group(1)) / "bin/java").exists():
        return None
    return program


@cache
def find_java() -> Path:
    """The first supported `java`; raises NoJava with what was found instead."""
    refused = []
    for path in candidates():
        version = version_of(path)
        if version in SUPPORTED and (java := behind(path)):
            return java
        if version is not None:
            what = "of no JDK" if version in SUPPORTED else f"Java {version}"
            refused.append(f"{path} is {what}")
    raise NoJava("; ".join(refused) or "no java program on PATH, and JAVA_HOME is not set")


def java_home() -> Path:
    """What JAVA_HOME must be for that Java."""
    return find_java().resolve().parent.parent


def archived_classes(class_path: str) -> tuple[str, ...]:
    """Options of a JVM that maps the classes `make setup` archived for its `class_path` (spark, kafka, metastore).

    None where there is no archive. One that does not fit (other jars, another Java) is left alone by the JVM, which
    says so on stderr: stdout may be a protocol.
    """
    archive = f"{class_path}.jsa"
    if folder := os.environ.get(RECORD):
        return (f"-XX:ArchiveClassesAtExit={Path(folder) / archive}",)
    if not (ARCHIVES / archive).exists():
        return ()
    return ("-Xlog:disable", "-Xlog:all=warning:stderr", f"-XX:SharedArchiveFile={ARCHIVES / archive}")
