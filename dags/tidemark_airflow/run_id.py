"""From an Airflow DAG run to the words that `tidemark` is given: a run id and a day."""

import hashlib
import re
from datetime import datetime

from spark_jobs.orchestration.interface import DAY

READABLE_LENGTH = 26
BACKFILLED = re.compile(r"backfill__[^_]+__(\d{4}-\d\d-\d\d)__.+")


def run_id_of(dag_run_id: str) -> str:
    """Lower-case letters, digits and dashes, the same for every try, with a hash so that no two runs meet.

    `scheduled__2026-01-02T00:00:00+00:00` -> `scheduled-2026-01-02t00-00-98c4e54c`
    """
    readable = re.sub(r"[^a-z0-9]+", "-", dag_run_id.lower()).strip("-")[:READABLE_LENGTH].strip("-")
    return f"{readable}-{hashlib.sha256(dag_run_id.encode()).hexdigest()[:8]}".lstrip("-")


def day_of(partition_key: str | None) -> str | None:
    """The day of a partition, exactly as YYYY-MM-DD; ValueError for anything else. None: a run without a key."""
    if partition_key is None:
        return None
    if datetime.strptime(partition_key, DAY).strftime(DAY) != partition_key:
        raise ValueError(f"partition key {partition_key!r} is not a day: write it as YYYY-MM-DD")
    return partition_key


def day_in(dag_run_id: str) -> str | None:
    """The day that Airflow puts into the name of a backfill's run; None where there is none.

    `backfill__2026-01-03T00:00:00+00:00__2026-01-02__hJ8k` -> `2026-01-02`
    """
    named = BACKFILLED.fullmatch(dag_run_id)
    return named and named[1]


def pin_of(dag_run_id: str) -> str:
    """The pin of a run of `marts`, for the schema `pin_dbt_0e6c2b7d`; the same for every try."""
    return f"dbt_{hashlib.sha256(dag_run_id.encode()).hexdigest()[:8]}"
