"""Ask Kafka about the topics that the speed layer follows: ids, offsets, retention.

Kafka admin API (kafka-python) -> plain dictionaries.
"""

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import AuthorizationError, KafkaError, for_code

from spark_jobs.contracts.row_types import Partition
from spark_jobs.messaging import security
from spark_jobs.messaging.security import KafkaRefused

READ_SECONDS = 3.0
READ_BYTES = 64 * 1024


class Broker:
    """One admin and one consumer connection, for one thread. KafkaRefused says why there is none.

    options: of kafka-python, for both.
    """

    def __init__(self, topics: Iterable[str], **options: Any) -> None:
        self.topics = sorted(topics)
        try:
            known = {**security.client(), **options}
            self._admin = KafkaAdminClient(**known)
            self._consumer = KafkaConsumer(**known, enable_auto_commit=False, max_partition_fetch_bytes=READ_BYTES)
        except KafkaError as error:
            raise KafkaRefused(security.why(error)) from error

    def close(self) -> None:
        self._consumer.close()
        self._admin.close()

    def partitions(self) -> tuple[dict[str, str], list[Partition]]:
        """Topic ids, and all partitions, of the topics that exist. One that we may not see is not one that is gone."""
        ids, partitions = {}, []
        for topic in self._admin.describe_topics(self.topics):
            if issubclass(error := for_code(topic["error_code"]), AuthorizationError):
                raise KafkaRefused(security.why(error(), topic["name"]))
            if topic["error_code"]:
                continue
            ids[topic["name"]] = str(topic["topic_id"])
            partitions += [(topic["name"], part["partition_index"]) for part in topic["partitions"]]
        return ids, partitions

    def available(self, partitions: list[Partition]) -> dict[Partition, tuple[int, int]]:
        """Per partition the earliest offset and the end offset."""
        asked = [TopicPartition(*partition) for partition in partitions]
        first, last = self._consumer.beginning_offsets(asked), self._consumer.end_offsets(asked)
        return {(p.topic, p.partition): (first[p], last[p]) for p in asked}

    def written_at(self, offsets: Mapping[Partition, int]) -> dict[Partition, float]:
        """When the first record from each of these offsets on was written, in seconds since 1970, as it says itself.

        Left out: a partition that gives none within `READ_SECONDS`, and records of before Kafka had timestamps.
        """
        places, written = {TopicPartition(*p): p for p in offsets}, dict[Partition, float]()
        self._consumer.assign(list(places))
        for place, partition in places.items():
            self._consumer.seek(place, offsets[partition])
        until = time.monotonic() + READ_SECONDS
        while len(written) < len(places) and time.monotonic() < until:
            for place, records in self._consumer.poll(timeout_ms=200).items():
                written.setdefault(places[place], records[0].timestamp / 1000)
                self._consumer.pause(place)
        self._consumer.assign([])
        return {partition: at for partition, at in written.items() if at >= 0}

    def retention_ms(self, topics: Iterable[str]) -> dict[str, int]:
        """Per topic `retention.ms`; left out: compacted topics (they keep the latest of a key) and unlimited ones."""
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
        if not asked:
            return {}
        described = self._admin.describe_configs(asked, config_filter="all")["topic"]
        return {
            topic: int(settings_of["retention.ms"]["value"])
            for topic, settings_of in described.items()
            if "compact" not in settings_of["cleanup.policy"]["value"] and int(settings_of["retention.ms"]["value"]) > 0
        }
