"""The platform's own producer: in order, nothing lost in silence, every error with its culprit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaTimeoutError, MessageSizeTooLargeError

from spark_jobs.messaging import producer as producing
from spark_jobs.messaging import topics
from spark_jobs.messaging.producer import Producer, Record, SendError, Sent
from tests.fake_kafka import Kafka

RECORD = Record("t", b"k", b"v")


class Away(Kafka):
    """A broker that takes nothing for a while."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def send(self, *arguments):
        self.times -= 1
        if self.times >= 0:
            raise KafkaTimeoutError("no metadata")
        return super().send(*arguments)


@given(st.lists(st.tuples(st.none() | st.binary(max_size=2), st.binary(max_size=9)), max_size=50))
def test_every_record_is_sent_once_and_is_where_it_is_said_to_be(rows):
    kafka, sent = Kafka(), []
    with Producer(kafka) as producer:
        producer.send((Record("t", key, value, (("n", b"1"),)) for key, value in rows), sent.append)
    assert [kafka.log["t", one.partition][one.offset] for one in sent] == [(*row, [("n", b"1")]) for row in rows]
    assert sum(map(len, kafka.log.values())) == len(rows)


def test_a_record_that_is_answered_is_told_before_the_next_is_sent():
    told: list[Sent] = []
    seen: list[int] = []

    def records():
        for _ in range(5):
            yield RECORD
            seen.append(len(told))

    Producer(Kafka()).send(records(), told.append)
    assert seen == [1, 2, 3, 4, 5]


def test_after_a_refusal_nothing_more_is_sent_and_what_kafka_took_is_said():
    kafka, told = Kafka(lambda key: "refuse" if key == b"bad" else "take"), []
    records = [RECORD, RECORD, Record("t", b"bad", b"v"), RECORD]
    with pytest.raises(SendError, match=r"topic t: .*too large.* \(2 record\(s\) are acknowledged, 1 are not"):
        Producer(kafka).send(records, told.append)
    assert len(told) == sum(map(len, kafka.log.values())) == 2


def test_a_record_that_the_client_refuses_names_its_topic_after_those_before_it_are_told():
    class Strict(Kafka):
        def send(self, topic, value, key, headers):
            if key == b"bad":
                raise MessageSizeTooLargeError("over the limit")
            return super().send(topic, value, key, headers)

    told: list[Sent] = []
    with pytest.raises(SendError, match=r"topic other: .*over the limit.* \(1 record"):
        Producer(Strict()).send([RECORD, Record("other", b"bad", b"v"), RECORD], told.append)
    assert len(told) == 1


def test_silence_is_an_error_not_a_wait_without_end(monkeypatch):
    monkeypatch.setattr(producing, "DELIVERY_SECONDS", 0.05)
    monkeypatch.setattr(producing, "MARGIN_SECONDS", 0.0)
    with pytest.raises(SendError, match="topic t: KafkaTimeoutError"):
        Producer(Kafka(lambda key: "mute")).send([RECORD])


def test_a_broker_that_is_away_is_waited_for_and_a_missing_topic_is_not(monkeypatch):
    monkeypatch.setattr(topics, "is_there", lambda topic: None)
    kafka = Away(3)
    Producer(kafka).send([RECORD])
    assert sum(map(len, kafka.log.values())) == 1
    monkeypatch.setattr(producing, "DELIVERY_SECONDS", -1)
    with pytest.raises(SendError, match="topic t: KafkaTimeoutError"):
        Producer(Away(3)).send([RECORD])
    monkeypatch.setattr(topics, "is_there", lambda topic: False)
    with pytest.raises(SendError, match="there is no topic t; `tidemark topics create`"):
        Producer(Away(1)).send([RECORD])


def test_an_answer_without_offset_is_no_loss():
    told: list[str] = []
    Producer(Kafka(lambda key: "forget")).send([RECORD], lambda sent: told.append(str(sent)))
    assert told[0].endswith("offset unknown")


def test_no_kafka_names_its_address_and_what_starts_it(monkeypatch):
    def absent(**options):
        raise KafkaTimeoutError("nobody")

    monkeypatch.setattr(producing, "KafkaProducer", absent)
    with pytest.raises(SendError, match=r"no Kafka at .*:\d+: .*`tidemark up` starts the embedded one"):
        Producer()


def test_e_records_wait_a_moment_for_others_to_go_with_them(monkeypatch: pytest.MonkeyPatch):
    """One request per record was four hundred a second."""
    made = {}
    monkeypatch.setattr(producing, "KafkaProducer", lambda **how: made.update(how))
    Producer()
    assert 0 < made["linger_ms"] < 50
