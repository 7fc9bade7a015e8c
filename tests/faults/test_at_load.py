"""I10, I19: parts killed while events come in; all come back alone, nothing is lost, nothing counts twice."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest
from kafka import KafkaConsumer, TopicPartition

from spark_jobs.settings import ROOT
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.fault, pytest.mark.platform]
TOPIC, RATE = "order_placed", "500"


@pytest.fixture
def load(platform: Platform) -> Iterator["subprocess.Popen[bytes]"]:
    """A generator beside the platform that has begun to send; stopped in time, so that its ledger is whole."""
    command, before = [ROOT / "tidemark", "generate", "--rate", RATE, "--seed", "99"], sent(platform)
    with subprocess.Popen(command, env=platform.environment, stdout=subprocess.DEVNULL) as generator:
        await_true(lambda: sent(platform) > before, 120, "the generator sends nothing")
        yield generator
        generator.send_signal(signal.SIGTERM)
        assert generator.wait(120) == 0


def sent(platform: Platform) -> int:
    """How many orders are in Kafka."""
    with closing(KafkaConsumer(bootstrap_servers=platform.settings.kafka)) as consumer:
        parts = [TopicPartition(TOPIC, number) for number in consumer.partitions_for_topic(TOPIC)]
        return sum(consumer.end_offsets(parts).values())


def landed(platform: Platform) -> int:
    return int(platform.heartbeat().get("lsn") or 0)


def kill(platform: Platform, part: str, victims: str) -> int:
    """kill -9 the part's process, the JVM below it, or both; the part's process id before."""
    pid: int = platform.status()["parts"][part]["pid"]
    process = psutil.Process(pid)
    jvm = next((child for child in process.children(recursive=True) if child.name() == "java"), None)
    assert jvm or victims == "process", f"{part} has no JVM below it"
    for victim in {"process": [process], "jvm": [jvm], "both": [process, jvm]}[victims]:
        victim.kill()
    return pid


@pytest.mark.parametrize(
    ("part", "victims"),
    [
        ("speed", "process"),
        ("speed", "jvm"),
        ("speed", "both"),
        ("thrift", "process"),
        ("broker", "process"),
        ("airflow-scheduler", "process"),
    ],
)
def test_a_part_killed_at_load_comes_back_and_the_stream_goes_on(
    platform: Platform, load: "subprocess.Popen[bytes]", part: str, victims: str
) -> None:
    before = landed(platform)
    await_true(lambda: landed(platform) > before, 120, "nothing lands before the fault")
    platform.await_ready(part, other_than=kill(platform, part, victims))
    await_true(lambda: bool(platform.status()["ready"]), 180, "not every part comes back", every=1)
    after = landed(platform)
    await_true(lambda: landed(platform) > after, 180, "nothing lands after the fault")
    assert load.poll() is None, "the generator gave up"


def test_after_the_last_fault_lag_returns_to_zero_and_verify_is_green(platform: Platform) -> None:
    await_true(lambda: platform.heartbeat().get("lag") == 0, 300, "the stream does not catch up")
    verified = platform.run("verify")
    assert verified.returncode == 0, verified.stdout
