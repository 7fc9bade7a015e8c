"""Only the jars that were locked are ever used."""

from pathlib import Path

import pytest

from infra import jars


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two jars, as locked."""
    for name, content in {"spark/a-1.jar": b"a", "kafka/b-2.jar": b"b"}.items():
        file = tmp_path / "jars" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    lock = tmp_path / "jars.lock"
    lock.write_text("# a comment\n" + "".join(f"{d}  {f}\n" for f, d in jars.digests(tmp_path / "jars")))
    monkeypatch.setattr(jars, "LOCK", lock)
    return tmp_path / "jars"


def test_jars_as_locked_have_no_findings(folder: Path) -> None:
    assert jars.findings(folder) == []


def test_an_altered_jar_is_named(folder: Path) -> None:
    (folder / "spark/a-1.jar").write_bytes(b"x")
    (finding,) = jars.findings(folder)
    assert finding.startswith("spark/a-1.jar has SHA-256")


def test_a_missing_jar_and_a_foreign_one_are_named(folder: Path) -> None:
    (folder / "kafka/b-2.jar").rename(folder / "kafka/c-3.jar")
    assert jars.findings(folder) == ["kafka/b-2.jar is missing", "kafka/c-3.jar is not in jars.lock"]


def test_an_altered_download_never_takes_the_place_of_the_jars(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    monkeypatch.setattr(jars, "TARGET", target)
    monkeypatch.setattr(jars, "fetch", lambda into: (into / "spark").mkdir(parents=True))
    with pytest.raises(jars.JarError, match=r"spark/a-1\.jar is missing"):
        jars.sync()
    assert not target.exists()


def test_no_class_path_has_two_versions_of_one_artifact() -> None:
    names = [file.rpartition("-")[0] for file in jars.locked()]
    assert len(names) == len(set(names))
    assert {file.partition("/")[0] for file in jars.locked()} == {"spark", "kafka"}
