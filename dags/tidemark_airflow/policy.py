"""The words that DAGs share: tags, owners, pool, asset, and the arguments that every DAG sets alike."""

import os
from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import Asset

from spark_jobs.orchestration.interface import TASK_HOURS, TASK_HOURS_VARIABLE
from tidemark_airflow.notify import FailureNotifier

# Made from infra/airflow/pools.json at start, with one slot each; people may give the second more.
PUBLISHING_POOL = "publishing"
REPLAY_POOL = "replays"
PUBLICATION = Asset(name="publication", uri="tidemark://serving/publication")


class Tag(StrEnum):
    """What a DAG is about; no other tags exist."""

    BATCH = "batch"
    SPEED = "speed"
    MODELS = "models"
    PUBLISHES = "publishes"
    ALARM = "alarm"
    MAINTENANCE = "maintenance"


class Owner(StrEnum):
    PLATFORM = "platform"
    ANALYTICS = "analytics"


def dag_arguments(
    owner: Owner, tags: list[Tag], doc: str | None, *, retries: int, runs_at_once: int = 1
) -> dict[str, Any]:
    """What every DAG says about itself; a DAG starts unpaused and never catches up alone.

    A try that takes too long is stopped. Where readers would see less of what is new, people are told at once.
    """
    tells = {"on_failure_callback": FailureNotifier()} if Tag.PUBLISHES in tags else {}
    timeout = timedelta(hours=float(os.environ.get(TASK_HOURS_VARIABLE) or TASK_HOURS))
    return {
        "tags": list(tags),
        "doc_md": doc,
        "catchup": False,
        "max_active_runs": runs_at_once,
        "is_paused_upon_creation": False,
        "default_args": {
            "owner": owner,
            "retries": retries,
            "retry_delay": timedelta(seconds=30),
            "execution_timeout": timeout,
            **tells,
        },
    }
