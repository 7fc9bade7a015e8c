"""C1: a whole platform whose Kafka asks for logins works like any other, and nobody else comes in at its doors."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from spark_jobs.messaging import security
from spark_jobs.orchestration.interface import BATCH_STEPS
from spark_jobs.settings import ROOT
from tests.e2e import test_doors
from tests.e2e.test_doors import (  # noqa: F401  they look at this platform, too
    test_c1_no_door_tells_a_stranger_anything,
    test_c1_no_secret_is_on_a_command_line_in_an_environment_or_in_a_file_of_others,
    test_c1_pythons_side_of_the_speed_application_takes_no_strangers_call,
    test_c1_the_metastore_answers_nobody_without_its_token,
    test_c1_thrift_refuses_who_is_anonymous_and_who_is_wrong,
)
from tests.platform import Platform, await_true, of_each_kind, running

pytestmark = [pytest.mark.fault, pytest.mark.platform, pytest.mark.timeout(1200)]

STRANGERS: tuple[dict[str, Any], ...] = (
    {"security_protocol": "PLAINTEXT"},
    {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "tidemark", "sasl_plain_password": "wrong"},
    {"sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "nobody", "sasl_plain_password": ""},
    {"sasl_mechanism": "PLAIN", "sasl_plain_username": "controller", "sasl_plain_password": "wrong"},
)
CLIENTS = (KafkaAdminClient, KafkaConsumer, KafkaProducer)
"""To list and make topics, to read, to write: each begins with a login."""


@pytest.fixture(scope="module")
def platform() -> Iterator[Platform]:
    """In the place of the shared one; without Airflow, whose tasks call the commands that are called here."""
    with (
        of_each_kind() as views,
        running(ROOT, "speed", views_folder=views, kafka_security_protocol="SASL_PLAINTEXT") as secured,
    ):
        yield secured


def kept(platform: Platform) -> dict[str, int]:
    """Topic -> how many records Kafka has of it, as the platform's own login sees it."""
    with closing(KafkaConsumer(**security.client(platform.settings))) as client:
        topics = client.topics()
        places = [TopicPartition(topic, number) for topic in topics for number in client.partitions_for_topic(topic)]
        ends = client.end_offsets(places)
        return {topic: sum(end for place, end in ends.items() if place.topic == topic) for topic in topics}


def test_c1_everything_works_from_generating_to_verifying(platform: Platform) -> None:
    platform.tidemark("generate", "--events", "5000", "--seed", "7", "--malformed-share", "0.01")
    await_true(lambda: platform.heartbeat().get("lag") == 0, 180, "the speed layer does not catch up")
    assert platform.sql("SELECT count(*) FROM serving.sessions")[0][0] > 0
    for step in BATCH_STEPS:
        platform.tidemark("batch", step, "--run-id", "secured")
    platform.tidemark("generate", "--events", "1000", "--seed", "8")
    await_true(lambda: platform.heartbeat().get("lag") == 0, 180, "the speed layer does not catch up")
    assert "every topic exists" in platform.tidemark("topics", "create")
    assert "nothing rings" in platform.tidemark("alarms"), "lag and retention can be asked for"
    platform.tidemark("verify", "--all")


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("port", ["kafka_port", "kafka_controller_port"])
def test_c1_kafka_lets_no_stranger_read_write_or_make(platform: Platform, port: str, stranger: dict[str, Any]) -> None:
    before = kept(platform)
    at = {"bootstrap_servers": f"127.0.0.1:{getattr(platform.settings, port)}", "bootstrap_timeout_ms": 2000}
    for client in CLIENTS:
        with pytest.raises(KafkaError):
            client(**at, **{"security_protocol": "SASL_PLAINTEXT"} | stranger)
    assert kept(platform) == before


def test_c1_its_doors_are_in_the_table(platform: Platform) -> None:
    test_doors.assert_known({name for name, _ in test_doors.doors(platform)})
