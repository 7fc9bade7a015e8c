"""What a topic has now, as a consumer of it sees."""

from typing import Any

from kafka import KafkaConsumer, TopicPartition


def all_of(consumer: KafkaConsumer, topic: str) -> list[Any]:
    """The records of the topic up to its end of now, in the order of each partition."""
    parts = [TopicPartition(topic, number) for number in sorted(consumer.partitions_for_topic(topic))]
    consumer.assign(parts)
    consumer.seek_to_beginning(*parts)
    ends, found = consumer.end_offsets(parts), list[Any]()
    while any(consumer.position(part) < ends[part] for part in parts):
        for batch in consumer.poll(timeout_ms=500).values():
            found += batch
    return found
