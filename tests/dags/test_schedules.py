"""When DAGs begin by themselves is a setting: what the timetables make of it, and what a wrong text is told."""

from datetime import UTC, datetime
from typing import Any

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.serialization.serialized_objects import DagSerialization
from conftest import DAGS
from tidemark_airflow import schedules

from spark_jobs.orchestration import interface


def bag() -> DagBag:
    return DagBag(DAGS)


def timetable(dag_id: str = interface.BATCH_LAYER) -> Any:
    """As the scheduler sees it."""
    return DagSerialization.from_dict(DagSerialization.to_dict(bag().dags[dag_id])).timetable


def scheduled(begins: datetime, runs: int = 2) -> list[tuple[str, str]]:
    """When the next runs begin, in UTC, and their partition keys."""
    found, of, at = list[tuple[str, str]](), timetable(), pendulum.instance(begins)
    for _ in range(runs):
        at = of._get_next(at)
        found.append((at.in_timezone("UTC").format("MM-DDTHH:mm"), of._get_partition_info(at)[1]))
    return found


def test_hourly_runs_are_for_the_day_of_their_hour_and_force_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interface.BATCH_SCHEDULE_VARIABLE, "0 * * * *")
    at = datetime(2026, 3, 1, 23, 30, tzinfo=UTC)
    assert scheduled(at) == [("03-02T00:00", "2026-03-01"), ("03-02T01:00", "2026-03-02")]
    assert bag().dags[interface.BATCH_LAYER].get_task("plan").forces_scheduled_day is False


def test_a_daily_run_has_its_hour_in_the_zone_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interface.BATCH_SCHEDULE_VARIABLE, "30 2 * * *")
    monkeypatch.setenv(interface.SCHEDULE_TIMEZONE_VARIABLE, "America/New_York")
    assert scheduled(datetime(2026, 1, 5, 12, tzinfo=UTC), runs=1) == [("01-06T07:30", "2026-01-05")]
    assert bag().dags[interface.BATCH_LAYER].get_task("plan").forces_scheduled_day is True


def test_the_rebuild_has_a_schedule_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interface.REBUILD_SCHEDULE_VARIABLE, "0 5 1 * *")
    first = timetable(interface.MAINTENANCE_WEEKLY)._get_next(pendulum.datetime(2026, 3, 2))
    assert first == pendulum.datetime(2026, 4, 1, 5)


@pytest.mark.parametrize(
    ("variable", "text", "why"),
    [
        (interface.BATCH_SCHEDULE_VARIABLE, "61 * * * *", "'61 .*' is no cron text such as '0 0 .*out of range"),
        (interface.BATCH_SCHEDULE_VARIABLE, "@daily", "'@daily' is no cron text .* five fields"),
        (interface.REBUILD_SCHEDULE_VARIABLE, "sundays at four", "'sundays at four' is no cron text"),
        (interface.SCHEDULE_TIMEZONE_VARIABLE, "Europe/Viena", "'Europe/Viena' is no time zone such as"),
        (interface.SCHEDULE_TIMEZONE_VARIABLE, "/etc/passwd", "'/etc/passwd' is no time zone"),
    ],
)  # fmt: skip
def test_a_text_that_says_nothing_is_refused_by_the_name_of_its_setting(
    variable: str, text: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(ValueError, match=f"{variable}: {why}"):
        (schedules.of_rebuild if variable == interface.REBUILD_SCHEDULE_VARIABLE else schedules.of_batch_layer)()
    assert any(variable in error for error in bag().import_errors.values()), "Airflow's page says so"
