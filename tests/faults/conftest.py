"""A platform; and a broker alone, with the speed application started and ended by the tests themselves."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from spark_jobs.settings import ROOT
from tests.platform import Platform, await_true, running, shared
from tests.spark.lake import event

NORMALLY = "import sys; from spark_jobs.speed.__main__ import main; sys.exit(main())"


class Stream:
    """Orders that are sent to a real broker, and a speed application that lands them."""

    def __init__(self, platform: Platform) -> None:
        self.platform, self.sent = platform, 0
        self.admin = KafkaAdminClient(bootstrap_servers=platform.settings.kafka)

    def send(self, count: int, partition: int | None = None) -> None:
        """New orders, each with an id of its own; by a client that knows today's partitions."""
        with closing(KafkaProducer(bootstrap_servers=self.platform.settings.kafka)) as producer:
            for _ in range(count):
                self.sent += 1
                value = json.dumps(event("order_placed", self.sent)).encode()
                producer.send("order_placed", value, key=b"k%d" % self.sent, partition=partition)
            producer.flush()

    @contextmanager
    def application(self, program: str = NORMALLY, **changes: object) -> Iterator["subprocess.Popen[str]"]:
        """The application, or a program that starts it, with `changes` of settings; ended by SIGTERM."""
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            env=self.platform.environment | {f"TIDEMARK_{name.upper()}": str(value) for name, value in changes.items()},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.communicate(timeout=60)

    def catch_up(self) -> None:
        """Start the application, and end it when it has read everything."""
        with self.application() as process:
            pid = process.pid

            def done() -> bool:
                beat = self.platform.heartbeat()
                return (beat.get("pid"), beat.get("state"), beat.get("lag")) == (pid, "running", 0)

            await_true(done, 300, "the application does not read everything")


@pytest.fixture(scope="module")
def stream() -> Iterator[Stream]:
    with running(ROOT, "broker") as platform:
        platform.tidemark("topics", "create")
        made = Stream(platform)
        with closing(made.admin):
            yield made


@pytest.fixture(scope="package")
def platform(request: pytest.FixtureRequest) -> Iterator[Platform]:
    """Started once for the tests of this folder, and stopped after the last of them."""
    with shared(request.config) as started:
        yield started
