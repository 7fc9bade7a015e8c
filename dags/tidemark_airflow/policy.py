"""The words that DAGs share: tags, owners, pool, asset, and the arguments that every DAG sets alike."""

from datetime import timedelta
from enum import StrEnum
from typing import Any

from airflow.sdk import Asset

PUBLISHING_POOL = "publishing"  # one slot; made from infra/airflow/pools.json at start
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


def dag_arguments(owner: Owner, tags: list[Tag], doc: str | None, *, retries: int) -> dict[str, Any]:
    """What every DAG says about itself; a DAG starts unpaused, runs one at a time and never catches up alone."""
    return {
        "tags": list(tags),
        "doc_md": doc,
        "catchup": False,
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        "default_args": {"owner": owner, "retries": retries, "retry_delay": timedelta(seconds=30)},
    }
