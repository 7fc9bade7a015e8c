"""`tidemark drill` as a program sees it: what is refused, and what its report says of a drill that broke a promise."""

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spark_jobs.cli import drill, drill_live, drill_report, main
from spark_jobs.cli.drill_report import Report
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.store import LedgerError
from spark_jobs.orchestration.interface import TRY_LATER
from spark_jobs.settings import settings
from tests.local_platform import Platform, market

HOLDS = {"invariant": "I3", "law": "orders_by_day is what its records give", "state": "holds", "checked": 4,
         "unit": "rows", "breaches": 0, "first": [], "note": "by recomputing; head 9, cut 6"}  # fmt: skip
BREACH = HOLDS | {"state": "breach", "breaches": 1, "first": ["store_id=3: orders 5 (sent) 6 (served)"],
                  "note": "by what was sent; head 9, cut 6"}  # fmt: skip


def tidemark(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["drill", *arguments])
    return done.exit_code, " ".join(done.output.split())


@pytest.fixture(autouse=True)
def _home(platform_home: Path) -> None:
    """A platform that nothing has landed on."""


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--to-lsn=3"], 2, "--to-lsn goes with --from-lsn"),
        (["--from-lsn=3", "--to-lsn=2"], 2, "--to-lsn goes with --from-lsn"),
        (["--only=reboot"], 2, "reboot"),
        (["--run-id=../up"], 2, "cannot name a run"),
        ([], 1, "nothing has landed yet"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(options: list[str], code: int, said: str) -> None:
    found, output = tidemark(*options)
    assert found == code and said in output
    assert not settings().shadow_home.exists()


def test_a_second_drill_comes_later(platform_home: Path) -> None:
    settings().run_dir.mkdir()
    with (settings().run_dir / "drill.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert tidemark()[0] == TRY_LATER


def test_without_memory_to_spare_nothing_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drill, "NEEDED_MB", 10**9)
    code, said = tidemark()
    assert code == 1 and "a drill takes up to" in said


def test_a_live_application_that_nobody_starts_again_is_not_killed() -> None:
    Platform(["orders_by_day"]).land(market(0))
    code, said = tidemark("--kill-live")
    assert code == 1 and "the live speed application is not running" in said
    with pytest.raises(LedgerError, match="container"):
        drill_live.victim(settings().model_copy(update={"supervisor": "compose"}), ledger.open())


def report(**changes: Any) -> Report:
    begun = Report("d", "ada", 7, ["kill"], (1, 9), 20, 0, "2026-03-01 12:00:00 UTC")
    for name, value in ({"findings": [HOLDS]} | changes).items():
        setattr(begun, name, value)
    return begun


@pytest.mark.parametrize(
    ("changes", "differing", "last"),
    [
        ({}, 0, "served = recomputed = what was sent"),
        ({"findings": []}, 0, "IT DOES NOT HOLD"),
        ({"as_sent": [BREACH]}, 1, "IT DOES NOT HOLD"),
        ({"findings": [BREACH], "as_sent": [BREACH]}, 2, "IT DOES NOT HOLD"),
        ({"findings": [HOLDS, {**HOLDS, "invariant": "I1", "state": "unable"}]}, 0, "IT DOES NOT HOLD"),
        ({"failed": "the speed application ended"}, 0, "IT DOES NOT HOLD"),
        ({"live": {"before": 1, "after": 2, "seconds": 9.0, "findings": [BREACH]}}, 0, "IT DOES NOT HOLD"),
    ],
)  # fmt: skip
def test_a_drill_holds_only_if_all_of_it_does(changes: dict[str, Any], differing: int, last: str) -> None:
    told = report(**changes)
    *lines, end = drill_report.lines(told)
    assert end.endswith(last) and told.holds is (last != "IT DOES NOT HOLD")
    assert f"rows that differ: {differing}" in lines
    page = drill_report.written(told)
    assert page.parent == settings().data_docs / "drills/d"
    assert all(view in page.read_text() for view in told.views)
    assert json.loads(page.with_name("report.json").read_text())["differing"] == differing


def test_a_breach_is_told_with_its_rows() -> None:
    said = "\n".join(drill_report.lines(report(as_sent=[BREACH])))
    assert "  store_id=3: orders 5 (sent) 6 (served)" in said
