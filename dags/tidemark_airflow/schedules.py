"""When DAGs begin by themselves: cron texts, and the zone of their hours, from the settings.

environment -> timetable. A text that says nothing makes the DAG an import error, which names the setting.
"""

import os
from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from airflow.sdk import CronPartitionTimetable, CronTriggerTimetable
from croniter import CroniterBadCronError, croniter

from spark_jobs.orchestration.interface import (
    BATCH_SCHEDULE,
    BATCH_SCHEDULE_VARIABLE,
    DAY,
    REBUILD_SCHEDULE,
    REBUILD_SCHEDULE_VARIABLE,
    SCHEDULE_TIMEZONE_VARIABLE,
)


def of_batch_layer() -> CronPartitionTimetable:
    """Each run is for the day of the time before. More often than daily, several are for one day."""
    # A platform that is started for the first time at one in the morning has nothing to build for the day before.
    return CronPartitionTimetable(
        _cron(BATCH_SCHEDULE_VARIABLE, BATCH_SCHEDULE),
        timezone=_timezone(),
        run_offset=-1,
        key_format=DAY,
        run_immediately=timedelta(0),
    )


def of_rebuild() -> CronTriggerTimetable:
    return CronTriggerTimetable(_cron(REBUILD_SCHEDULE_VARIABLE, REBUILD_SCHEDULE), timezone=_timezone())


def is_at_most_daily(timetable: CronPartitionTimetable) -> bool:
    """Whether it has one time of the day."""
    return all(field.isdecimal() for field in timetable.expression.split()[:2])


def _cron(variable: str, default: str) -> str:
    text = os.environ.get(variable) or default
    try:
        croniter.expand(text)
        if len(text.split()) == 5:
            return text
        why = "it must have five fields"
    except CroniterBadCronError as error:
        why = str(error)
    raise ValueError(f"{variable}: {text!r} is no cron text such as {default!r}: {why}")


def _timezone() -> str:
    name = os.environ.get(SCHEDULE_TIMEZONE_VARIABLE) or "UTC"
    try:
        return ZoneInfo(name).key
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:  # there is none of that name, or it cannot be one
        raise ValueError(f"{SCHEDULE_TIMEZONE_VARIABLE}: {name!r} is no time zone such as 'Europe/Vienna'") from error
