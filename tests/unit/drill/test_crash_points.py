"""Where the application is killed: by turns of both executors, once for each order, and nowhere without one."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_jobs.drill import crash_points
from spark_jobs.drill.crash_points import BY_WORKERS, IN_PROCESS
from spark_jobs.settings import settings


def test_kills_go_by_turns_through_all_points() -> None:
    points = crash_points.chosen(9, seed=3)
    assert {*points[:8:2]} == {*IN_PROCESS} and {*points[1:8:2]} == {*BY_WORKERS}
    assert points[8] == points[0] and points == crash_points.chosen(9, seed=3)


@pytest.mark.parametrize("empty", [True, False])
def test_an_order_waits_for_records_and_counts_once(
    platform_home: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    said = list[str]()
    armed, batch = list[str](), SimpleNamespace(isEmpty=lambda: empty)
    monkeypatch.setattr(crash_points, "_crash", lambda point, armed: said.append(point) if point in armed else None)
    land = crash_points._watched(lambda: said.append("landed"), "before", "after", armed)
    micro_batch = crash_points._arming(lambda layer, batch, number: land(), armed)
    settings().run_dir.mkdir()
    crash_points.arm(settings(), "after")
    micro_batch(None, batch, 1)
    assert said == (["landed"] if empty else ["landed", "after"])
    assert crash_points.crash_file(settings()).exists() is empty
