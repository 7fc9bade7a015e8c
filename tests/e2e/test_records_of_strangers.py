"""Records that other producers sent: they stop nothing, whatever their timestamps and sizes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import InvalidTimestampError

from infra.embedded.supervisor import Supervisor
from spark_jobs.settings import settings
from tests import unreadable_header
from tests.e2e.runs import moment, orders
from tests.e2e.runs import order as any_order
from tests.platform import Platform, await_true

pytestmark = [pytest.mark.slow, pytest.mark.platform, pytest.mark.timeout(900)]
TOPIC = "order_placed"
LIMITS = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")
NANOSECONDS = 1_700_000_000_000_000_000
MEGABYTE = 1024 * 1024


def order(**changes: str) -> str:
    """Within the horizon: after a publication an older one would wait for the next, and change what it answers."""
    return any_order(occurred_at=moment(), **changes)


@contextmanager
def producer(platform: Platform) -> Iterator[KafkaProducer]:
    servers, limits = platform.settings.kafka, {"max_request_size": 4 * MEGABYTE}
    with closing(KafkaProducer(bootstrap_servers=servers, compression_type="gzip", linger_ms=20, **limits)) as client:
        yield client


@contextmanager
def without_limits(platform: Platform) -> Iterator[None]:
    """The topic as an older broker made it: it takes any timestamp."""
    with closing(KafkaAdminClient(bootstrap_servers=platform.settings.kafka)) as admin:

        def limit(values: dict[str, str]) -> None:
            admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC, values)])

        asked = ConfigResource(ConfigResourceType.TOPIC, TOPIC)
        made = admin.describe_configs([asked], config_filter="all")["topic"][TOPIC]
        limit(dict.fromkeys(LIMITS, str(2**63 - 1)))
        yield
        limit({name: made[name]["value"] for name in LIMITS})


def landed(platform: Platform) -> int:
    [(records,)] = platform.sql(f"SELECT count(*) FROM master.log WHERE kind = 'record' AND topic = '{TOPIC}'")
    return int(records)


def taken(platform: Platform, value: str, at: int | None) -> bool:
    """Send a record, by a producer that has met no refusal; whether Kafka takes it, with the limits that it has now."""
    try:
        with producer(platform) as client:
            client.send(TOPIC, value.encode(), timestamp_ms=at, headers=[("source", b"stranger")]).get(30)
    except InvalidTimestampError:
        return False
    return True


def in_log(platform: Platform, value: str) -> list[tuple[object, ...]]:
    """How often the log has these bytes, and whether with a timestamp of our time."""
    is_of_now = "timestamp BETWEEN '2000-01-01' AND '2100-01-01'"
    return platform.sql(
        f"SELECT {is_of_now}, count(*) FROM master.log WHERE CAST(value AS STRING) = '{value}' GROUP BY 1"
    )


def test_b3_a_timestamp_that_spark_cannot_read_stops_nothing_and_its_record_counts(platform: Platform) -> None:
    assert not taken(platform, order(), NANOSECONDS), "topics of ours have a limit"
    before, pid = orders(platform), platform.heartbeat()["pid"]
    values = {order(): at for at in (NANOSECONDS, -NANOSECONDS, None)}
    with without_limits(platform):
        for value, at in values.items():
            await_true(partial(taken, platform, value, at), 30, f"Kafka does not take the timestamp {at}")
    assert taken(platform, order(), None)
    await_true(lambda: orders(platform) == before + len(values) + 1, 120, "not all of them count")
    assert [in_log(platform, value) for value in values] == [[(False, 1)], [(False, 1)], [(True, 1)]]
    assert platform.heartbeat()["pid"] == pid, "the application never stopped"
    assert platform.tidemark("verify")


def test_a_header_that_only_java_can_read_stops_nothing_and_its_record_counts(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I2: its value is in the log; what is no UTF-8 of its name is replaced, as Spark's source does it."""
    before, pid = orders(platform), platform.heartbeat()["pid"]
    monkeypatch.setenv("TIDEMARK_KAFKA_PORT", str(platform.settings.kafka_port))
    settings.cache_clear()
    unreadable_header.send(TOPIC, (value := order()).encode())
    monkeypatch.undo()
    settings.cache_clear()
    assert taken(platform, order(), None)
    await_true(lambda: orders(platform) == before + 2, 60, "it and the next one do not count")
    headers = f"SELECT headers[0].key, headers[0].value FROM master.log WHERE CAST(value AS STRING) = '{value}'"
    assert platform.sql(headers) == [("\ufffd\ufffd", b"ok")]
    assert platform.heartbeat()["pid"] == pid, "the application never stopped"


@pytest.mark.fault
def test_b4_more_bytes_than_the_driver_could_hold_land_at_the_workers(platform: Platform) -> None:
    """They are there before the application starts: its first micro-batch has them all."""
    before = landed(platform)
    stopped = Supervisor(platform.settings)
    stopped.stop("speed")
    with producer(platform) as client:
        sent = [client.send(TOPIC, order(note="a" * MEGABYTE).encode()) for _ in range(1_100)]
        for one in sent:
            one.get(120)
    platform.tidemark("restart", "speed")
    pid = platform.heartbeat()["pid"]
    await_true(lambda: landed(platform) == before + len(sent), 600, "the records do not land")
    assert platform.heartbeat()["pid"] == pid, "no start failed"
