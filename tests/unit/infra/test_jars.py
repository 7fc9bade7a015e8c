"""Only the jars that were locked are ever used."""

import fcntl
from dataclasses import replace
from pathlib import Path

import pytest

from infra import jars


@pytest.fixture
def as_locked(tmp_path: Path) -> jars.JarSet:
    """A set of two jars, in their place and locked."""
    made = jars.JarSet(tmp_path / "jars.xml", tmp_path / "jars.lock", tmp_path / "jars")
    for name, content in {"spark/a-1.jar": b"a", "kafka/b-2.jar": b"b"}.items():
        file = made.target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    made.lock.write_text("# a comment\n" + "".join(f"{d}  {f}\n" for f, d in jars.digests(made.target)))
    return made


def test_jars_as_locked_have_no_findings(as_locked: jars.JarSet) -> None:
    assert jars.findings(as_locked, as_locked.target) == []


def test_an_altered_jar_is_named(as_locked: jars.JarSet) -> None:
    (as_locked.target / "spark/a-1.jar").write_bytes(b"x")
    (finding,) = jars.findings(as_locked, as_locked.target)
    assert finding.startswith("spark/a-1.jar has SHA-256")


def test_a_missing_jar_and_a_foreign_one_are_named(as_locked: jars.JarSet) -> None:
    (as_locked.target / "kafka/b-2.jar").rename(as_locked.target / "kafka/c-3.jar")
    said = jars.findings(as_locked, as_locked.target)
    assert said == ["kafka/b-2.jar is missing", "kafka/c-3.jar is not in jars.lock"]


def test_an_altered_download_never_takes_the_place_of_the_jars(
    as_locked: jars.JarSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = replace(as_locked, target=as_locked.target.with_name("target"))
    monkeypatch.setattr(jars, "fetch", lambda _, into: (into / "spark").mkdir(parents=True))
    with pytest.raises(jars.JarError, match=r"spark/a-1\.jar is missing"):
        jars.sync(elsewhere)
    assert not elsewhere.target.exists()


def test_a_lock_names_what_was_resolved_and_puts_it_in_place(
    as_locked: jars.JarSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetch(_: Path, into: Path) -> None:
        (into / "connect").mkdir(parents=True)
        (into / "connect/d-4.jar").write_bytes(b"d")

    monkeypatch.setattr(jars, "fetch", fetch)
    jars.lock(as_locked)
    assert list(jars.locked(as_locked)) == ["connect/d-4.jar"]
    assert jars.findings(as_locked, as_locked.target) == []


def test_a_module_makes_a_set_with_a_lock_and_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("jars", "other", "ivysettings"):
        (tmp_path / f"{name}.xml").touch()
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    other = jars.JarSet(tmp_path / "other.xml", tmp_path / "other.lock", jars.ROOT / ".jars-other")
    assert jars.sets() == {"jars": jars.PLATFORM, "other": other}


def test_an_unknown_set_is_refused_with_the_names_of_the_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert jars.main(["sync", "no-such-set"]) == 1
    assert "SET: " in (said := capsys.readouterr().err)
    assert all(name in said for name in jars.sets())


@pytest.mark.parametrize("name", jars.sets())
def test_no_class_path_has_two_versions_of_one_artifact(name: str) -> None:
    names = [file.rpartition("-")[0] for file in jars.locked(jars.sets()[name])]
    assert len(names) == len(set(names))


def test_the_platform_has_two_class_paths() -> None:
    assert {file.partition("/")[0] for file in jars.locked()} == {"spark", "kafka"}


def test_a_second_setup_waits_for_the_cache_that_a_first_one_uses(tmp_path: Path) -> None:
    with jars.alone_in(tmp_path), (tmp_path / ".lock").open("w") as second, pytest.raises(BlockingIOError):
        fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with jars.alone_in(tmp_path):
        pass
