"""The contracts of imports in pyproject.toml can fail: each is broken once, in a copy of the configuration."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.settings import ROOT

CONFIGURATION = (ROOT / "pyproject.toml").read_text()
Changes = list[tuple[str, str]]
BROKEN: dict[str, tuple[Changes, str]] = {
    "a room imports one above it": (
        [('"cli",', '"settings",'), ('"settings",\n  "orch', '"cli",\n  "orch')],
        "platform -> spark_jobs.settings",
    ),
    "a room is in no layer": ([('  "ledger",\n', "")], "spark_jobs.ledger"),
    "another package imports infra": (
        [("spark_jobs.cli.* -> infra.**", "spark_jobs.cli.demo -> infra.**")],
        "platform -> infra",
    ),
    "another package imports hypothesis": (
        [("testing.* -> hypothesis", "testing.laws -> hypothesis")],
        "strategies -> hypothesis",
    ),
}


def lint_imports(configuration: Path) -> "subprocess.CompletedProcess[str]":
    command = [Path(sys.executable).parent / "lint-imports", "--config", configuration]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("changes", "named"), BROKEN.values(), ids=BROKEN)
def test_a_broken_contract_is_seen(tmp_path: Path, changes: Changes, named: str) -> None:
    broken = CONFIGURATION
    for old, new in changes:
        assert broken.count(old) == 1
        broken = broken.replace(old, new)
    (tmp_path / "pyproject.toml").write_text(broken)
    seen = lint_imports(tmp_path / "pyproject.toml")
    assert seen.returncode == 1 and named in " ".join(seen.stdout.split()), seen.stdout
