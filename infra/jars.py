"""The jars beside PySpark's own, in sets: resolve, verify against the lock, put in place.

infra/locks/<set>.xml -> Ivy (from PySpark's jars) -> `.jars-<set>/<class path>/`; each file's SHA-256 is in <set>.lock.
The set `jars` is what the platform itself runs on, in `.jars/spark` and `.jars/kafka`; `make setup` fetches no other.
Alone: `python -m infra.jars sync [SET] | verify [SET] | lock`. Standard library only: no environment exists yet.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.storage.java import find_java

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "infra/locks"
IVY_SETTINGS = LOCKS / "ivysettings.xml"
IVY_SETTINGS_OF_MIRROR = LOCKS / "ivysettings-mirror.xml"


class JarError(RuntimeError):
    """A jar could not be fetched, or is not the one that the lock names."""


@dataclass(frozen=True)
class JarSet:
    """The jars that one Ivy module asks for, a folder per class path (Ivy's configurations)."""

    module: Path
    lock: Path
    target: Path


PLATFORM = JarSet(LOCKS / "jars.xml", LOCKS / "jars.lock", ROOT / ".jars")


def sets() -> dict[str, JarSet]:
    """Every set by its name: a module `infra/locks/<set>.xml` makes one."""
    modules = (file for file in sorted(LOCKS.glob("*.xml")) if not file.name.startswith("ivysettings"))
    others = {m.stem: JarSet(m, m.with_suffix(".lock"), ROOT / f".jars-{m.stem}") for m in modules}
    return others | {"jars": PLATFORM}


def ivy_cache() -> Path:
    """Downloads are kept per user, so that a second clone needs no network."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidemark" / "ivy"


@contextmanager
def alone_in(cache: Path) -> Iterator[None]:
    """One setup at a time: Ivy removes the unfinished downloads of another one that shares its cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fetch(module: Path, folder: Path, venv: Path = ROOT / ".venv") -> None:
    """Let Ivy put every jar of the module into `folder/<class path>/`; raises JarError with Ivy's own words."""
    ivy = next(iter(venv.glob("lib*/python*/site-packages/pyspark/jars/ivy-*.jar")), None)
    if ivy is None:
        raise JarError(f"no ivy jar in {venv}: build the Spark environment first (`make setup`)")
    maven = os.environ.get("TIDEMARK_MAVEN_URL")
    command = [str(find_java()), *([f"-Dtidemark.maven.url={maven}"] if maven else []), "-cp", str(ivy)]
    places = IVY_SETTINGS_OF_MIRROR if maven else IVY_SETTINGS
    command += ["org.apache.ivy.Main", "-settings", str(places), "-cache", str(ivy_cache()), "-ivy", str(module)]
    command += ["-types", "jar", "bundle", "maven-plugin"]
    command += ["-retrieve", f"{folder}/[conf]/[artifact]-[revision](-[classifier]).[ext]"]
    with alone_in(ivy_cache()):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise JarError(f"Ivy could not resolve {module}:\n{(done.stdout + done.stderr)[-4000:]}")


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """(`spark/x.jar`, SHA-256) of each jar below `folder`, by name."""
    for jar in sorted(folder.glob("*/*.jar")):
        yield f"{jar.parent.name}/{jar.name}", hashlib.sha256(jar.read_bytes()).hexdigest()


def locked(jars: JarSet = PLATFORM) -> dict[str, str]:
    """File -> SHA-256 of the committed lock."""
    lines = [line.split() for line in jars.lock.read_text().splitlines() if line and not line.startswith("#")]
    return {file: digest for digest, file in lines}


def findings(jars: JarSet, folder: Path) -> list[str]:
    """What is wrong with the jars in `folder`: one sentence a file, none when all is as locked."""
    expected, found, name = locked(jars), dict(digests(folder)), jars.lock.name
    missing = [f"{file} is missing" for file in expected.keys() - found.keys()]
    foreign = [f"{file} is not in {name}" for file in found.keys() - expected.keys()]
    altered = [
        f"{file} has SHA-256 {found[file]}, {name} says {expected[file]}"
        for file in expected.keys() & found.keys()
        if found[file] != expected[file]
    ]
    return sorted(missing + foreign + altered)


def sync(jars: JarSet = PLATFORM) -> bool:
    """Make the set's folder as locked; False when it was so already. Interrupted, it leaves the old one in place."""
    if jars.target.exists() and not findings(jars, jars.target):
        return False
    incoming = _incoming(jars)
    if problems := findings(jars, incoming):
        hint = f"Remove {ivy_cache()} and try again; if it stays so, the registry serves other files than were locked."
        raise JarError("\n".join([*problems, hint]))
    _put_in_place(jars, incoming)
    return True


def lock(jars: JarSet) -> None:
    """Resolve anew and write the set's lock: for people who changed its module."""
    incoming = _incoming(jars)
    lines = [f"{digest}  {file}" for file, digest in digests(incoming)]
    head = f"# Written by `make lock` from {jars.module.name}; as `sha256sum` writes it."
    jars.lock.write_text("\n".join([head, *lines]) + "\n")
    _put_in_place(jars, incoming)


def _incoming(jars: JarSet) -> Path:
    """What Ivy resolves now, in a folder beside the set's own."""
    incoming = jars.target.with_name(f"{jars.target.name}.incoming")
    shutil.rmtree(incoming, ignore_errors=True)
    fetch(jars.module, incoming)
    return incoming


def _put_in_place(jars: JarSet, incoming: Path) -> None:
    shutil.rmtree(jars.target, ignore_errors=True)
    incoming.rename(jars.target)


def main(arguments: list[str]) -> int:
    """`sync` or `verify` (a set; `jars` unless named) or `lock` (all); exit code 1 with the reason on stderr."""
    known = sets()
    try:
        match arguments:
            case ["lock"]:
                for jars in known.values():
                    lock(jars)
            case ["sync" | "verify" as verb]:
                return main([verb, "jars"])
            case ["sync", name] if name in known:
                print("jars fetched" if sync(known[name]) else "jars are as locked")
            case ["verify", name] if name in known:
                if problems := findings(known[name], known[name].target):
                    raise JarError("\n".join(problems))
            case _:
                raise JarError(f"say `python -m infra.jars sync [SET] | verify [SET] | lock`; SET: {', '.join(known)}")
    except JarError as error:
        print(f"jars: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
