"""Which Java is found, and what its home is."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.storage import java


@pytest.fixture
def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A `java` of asdf, jenv or mise, first on PATH: a script that starts the one of a JDK elsewhere."""
    shim = tmp_path / "manager/shims/java"
    jdk = tmp_path / "jdk"
    for program in (shim, jdk / "bin/java"):
        program.parent.mkdir(parents=True)
    said = f'    java.home = {jdk}\nopenjdk version "17.0.1"\n'
    (jdk / "bin/java").write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}END\n")
    shim.write_text(f"#!/bin/sh\nexec '{jdk}/bin/java' \"$@\"\n")
    for program in (shim, jdk / "bin/java"):
        program.chmod(0o755)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    java.find_java.cache_clear()
    yield shim
    java.find_java.cache_clear()


def test_behind_a_shim_is_the_java_that_it_starts(shim: Path, tmp_path: Path) -> None:
    assert shutil.which("java") == str(shim)
    assert java.find_java() == tmp_path / "jdk/bin/java"
    assert java.java_home() == tmp_path / "jdk"


def test_a_shim_that_leads_to_no_jdk_is_passed_by(shim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shim.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    monkeypatch.setattr(java, "candidates", lambda: iter([shim]))
    with pytest.raises(java.NoJava, match="is of no JDK"):
        java.find_java()
