"""A record with a header whose name is no UTF-8, which only Java's client reads."""

import pytest

from spark_jobs.sample import record_batches
from spark_jobs.sample.block import facts
from spark_jobs.sample.producer import Producer, Sent


def send(topic: str, value: bytes) -> Sent:
    """Sent to the Kafka of the settings: no client library writes such a name, so the batch is written by hand."""
    two, sent = record_batches.varint(2), list[Sent]()
    header = b"".join((record_batches.varint(1), two, b"\xff\xfe", two, b"ok"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_batches, "encoded_headers", lambda _: header)
        with Producer(sent.append) as producer:
            producer.send(facts(topic, [b"k"], [value]))
    [one] = sent
    return one
