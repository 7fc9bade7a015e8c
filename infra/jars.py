"""The jars beside PySpark's own: resolve, verify against the lock, put in place.

infra/locks/jars.xml -> Ivy (from PySpark's jars) -> `.jars/spark`, `.jars/kafka`; each file's SHA-256 is in jars.lock.
Alone: `python -m infra.jars sync | lock | verify`. Standard library only: it runs before any environment exists.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from infra.java import find_java

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "infra/locks/jars.xml"
LOCK = ROOT / "infra/locks/jars.lock"
IVY_SETTINGS = ROOT / "infra/locks/ivysettings.xml"
IVY_SETTINGS_OF_MIRROR = ROOT / "infra/locks/ivysettings-mirror.xml"
TARGET = ROOT / ".jars"


class JarError(RuntimeError):
    """A jar could not be fetched, or is not the one that the lock names."""


def ivy_cache() -> Path:
    """Downloads are kept per user, so that a second clone needs no network."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidemark" / "ivy"


def fetch(folder: Path, venv: Path = ROOT / ".venv") -> None:
    """Let Ivy put every jar of `jars.xml` into `folder/<class path>/`; raises JarError with Ivy's own words."""
    ivy = next(iter(venv.glob("lib*/python*/site-packages/pyspark/jars/ivy-*.jar")), None)
    if ivy is None:
        raise JarError(f"no ivy jar in {venv}: build the Spark environment first (`make setup`)")
    maven = os.environ.get("TIDEMARK_MAVEN_URL")
    command = [str(find_java().path), *([f"-Dtidemark.maven.url={maven}"] if maven else []), "-cp", str(ivy)]
    places = IVY_SETTINGS_OF_MIRROR if maven else IVY_SETTINGS
    command += ["org.apache.ivy.Main", "-settings", str(places), "-cache", str(ivy_cache()), "-ivy", str(MODULE)]
    command += ["-types", "jar", "bundle", "maven-plugin"]
    command += ["-retrieve", f"{folder}/[conf]/[artifact]-[revision](-[classifier]).[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise JarError(f"Ivy could not resolve {MODULE}:\n{(done.stdout + done.stderr)[-4000:]}")


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """(`spark/x.jar`, SHA-256) of each jar below `folder`, by name."""
    for jar in sorted(folder.glob("*/*.jar")):
        yield f"{jar.parent.name}/{jar.name}", hashlib.sha256(jar.read_bytes()).hexdigest()


def locked() -> dict[str, str]:
    """File -> SHA-256 of the committed lock."""
    lines = [line.split() for line in LOCK.read_text().splitlines() if line and not line.startswith("#")]
    return {file: digest for digest, file in lines}


def findings(folder: Path = TARGET) -> list[str]:
    """What is wrong with the jars in `folder`: one sentence a file, none when all is as locked."""
    expected, found = locked(), dict(digests(folder))
    missing = [f"{file} is missing" for file in expected.keys() - found.keys()]
    foreign = [f"{file} is not in {LOCK.name}" for file in found.keys() - expected.keys()]
    altered = [
        f"{file} has SHA-256 {found[file]}, {LOCK.name} says {expected[file]}"
        for file in expected.keys() & found.keys()
        if found[file] != expected[file]
    ]
    return sorted(missing + foreign + altered)


def sync() -> bool:
    """Make `.jars` as locked; False when it was so already. Interrupted, it leaves the old folder in place."""
    if TARGET.exists() and not findings():
        return False
    incoming = TARGET.with_name(".jars.incoming")
    shutil.rmtree(incoming, ignore_errors=True)
    fetch(incoming)
    if problems := findings(incoming):
        hint = f"Remove {ivy_cache()} and try again; if it stays so, the registry serves other files than were locked."
        raise JarError("\n".join([*problems, hint]))
    shutil.rmtree(TARGET, ignore_errors=True)
    incoming.rename(TARGET)
    return True


def lock() -> None:
    """Resolve anew and write jars.lock: for people who changed jars.xml."""
    incoming = TARGET.with_name(".jars.incoming")
    shutil.rmtree(incoming, ignore_errors=True)
    fetch(incoming)
    lines = [f"{digest}  {file}" for file, digest in digests(incoming)]
    LOCK.write_text("\n".join(["# Written by `make lock` from jars.xml; as `sha256sum` writes it.", *lines]) + "\n")
    shutil.rmtree(TARGET, ignore_errors=True)
    incoming.rename(TARGET)


def main(arguments: list[str]) -> int:
    """`sync`, `lock` or `verify`; exit code 1 with the reason on stderr."""
    try:
        match arguments:
            case ["sync"]:
                print("jars fetched" if sync() else "jars are as locked")
            case ["lock"]:
                lock()
            case ["verify"]:
                if problems := findings():
                    raise JarError("\n".join(problems))
            case _:
                raise JarError("say `python -m infra.jars sync | lock | verify`")
    except JarError as error:
        print(f"jars: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
