"""Kafka topics as the contracts want them.

contracts (topic, compacted) + settings (partitions, retention) -> missing topics created; existing ones left alone.

A topic that exists is never changed here: other partitions or another retention are its operator's decision, and the
speed application takes both as they come.
"""

from collections.abc import Collection
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import AuthorizationError, KafkaError, TopicAlreadyExistsError

from spark_jobs.contracts.model import Contracts
from spark_jobs.messaging import security
from spark_jobs.settings import settings

HOUR_MS = 3_600_000
TIMESTAMPS = {
    # What Kafka 4 refuses by itself, said to older brokers too: nanoseconds, sent for milliseconds.
    "message.timestamp.after.max.ms": str(HOUR_MS),
    "message.timestamp.before.max.ms": str(100 * 365 * 24 * HOUR_MS),
}
"""How far a record's timestamp may be from the broker's clock."""


class TopicsError(RuntimeError):
    """Kafka could not be asked, or refused."""


def wanted(contracts: Contracts) -> dict[str, dict[str, Any]]:
    """Topic -> options for Kafka's CreateTopics."""
    compacted = {contract.topic for contract in contracts if contract.compacted}
    kept = {"cleanup.policy": "delete", "retention.ms": str(settings().topic_retention_hours * HOUR_MS)}
    return {
        topic: {
            "num_partitions": settings().topic_partitions,
            "configs": TIMESTAMPS | ({"cleanup.policy": "compact"} if topic in compacted else kept),
        }
        for topic in contracts.topics
    }


def is_there(topic: str) -> bool | None:
    """Whether Kafka has the topic; None where Kafka cannot be asked."""
    try:
        admin = KafkaAdminClient(**security.client())
    except KafkaError:
        return None
    try:
        return topic in admin.list_topics()
    except KafkaError:
        return None
    finally:
        admin.close()


def create(contracts: Contracts, known: Collection[str] = ()) -> list[str]:
    """Create what is missing, wait until it has leaders; the names of the new topics. Raises TopicsError.

    known: topics that the log follows. One of them that is gone is not made here: it had other records, and perhaps
    other partitions.
    """
    try:
        admin = KafkaAdminClient(**security.client())
    except KafkaError as error:
        raise TopicsError(security.why(error)) from error
    try:
        existing = set(admin.list_topics())
        missing = {topic: options for topic, options in wanted(contracts).items() if topic not in {*existing, *known}}
        if missing:
            admin.create_topics(missing, wait_for_metadata=True)
        return sorted(missing)
    except TopicAlreadyExistsError:  # somebody else is creating them in this very moment
        admin.wait_for_topics(contracts.topics)
        return []
    except AuthorizationError as error:
        raise TopicsError(security.why(error)) from error
    except KafkaError as error:
        raise TopicsError(f"Kafka at {settings().kafka} refused: {error!r}") from error
    finally:
        admin.close()
