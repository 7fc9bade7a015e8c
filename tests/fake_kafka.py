"""A KafkaProducer without a broker: kafka-python's own queue and futures, and a sender that takes all at once."""

from collections import defaultdict
from types import SimpleNamespace

from kafka.errors import MessageSizeTooLargeError
from kafka.partitioner import murmur2
from kafka.producer.future import FutureProduceResult, FutureRecordMetadata
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.record.memory_records import MemoryRecords
from kafka.structs import TopicPartition

PARTITIONS = 3


class Kafka:
    """`log`: (topic, partition) -> the records taken, as (key, value, headers).

    answer: first key of a batch -> 'take', 'refuse', 'forget' (taken; an answer without offset) or 'mute'.
    """

    def __init__(self, answer=lambda key: "take"):
        self._accumulator = RecordAccumulator(message_version=2)
        self._sender = SimpleNamespace(wakeup=self.take_all)
        self.answer = answer
        self.log = defaultdict(list)
        self.sizes = []

    def partitions_for(self, topic):
        return set(range(PARTITIONS))

    def send(self, topic, value, key, headers):
        """One record, by the public interface."""
        place = TopicPartition(topic, murmur2(key or value or b"") % PARTITIONS)
        future = FutureRecordMetadata(FutureProduceResult(place), 0, -1, None, -1, -1, -1)
        answer = self.answer(key)
        if answer == "refuse":
            future._produce_future.failure(MessageSizeTooLargeError("too large"))
        if answer in ("take", "forget"):
            self.log[place].append((key, value, headers))
            future._produce_future.success((len(self.log[place]) - 1 if answer == "take" else -1, -1, None))
        return future

    def close(self, timeout=None):
        pass

    def take_all(self):
        for place, queue in list(self._accumulator._batches.items()):
            while queue:
                self.take(place, queue.popleft())

    def take(self, place, batch):
        batch.records.close()
        self.sizes.append(batch.records.size_in_bytes())
        records = [(r.key, r.value, r.headers) for b in MemoryRecords(batch.records.buffer()) for r in b]
        assert len(records) == batch.record_count
        answer = self.answer(records[0][0])
        if answer == "refuse":
            batch.complete_exceptionally(error := MessageSizeTooLargeError("too large"), lambda _: error)
        if answer in ("take", "forget"):
            log = self.log[place]
            batch.complete(len(log) if answer == "take" else -1, -1)
            log.extend(records)
