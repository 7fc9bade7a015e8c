"""Run the platform's JVMs once in a scratch home, so that each writes the classes it loaded (infra.archives).

`python -m infra.embedded.recording`, with the folder in TIDEMARK_RECORD_CLASSES. Broker and metastore are the real
programs. One Spark session, with Hive's Thrift server in it, does a little of all that Spark does here: it stands for
the Thrift server, the speed application and batch jobs, whose class path is the same.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from infra.embedded.program import NotReady, Program
from infra.embedded.programs import program
from infra.embedded.shadow import free_ports
from infra.embedded.thrift import hive_properties, login_options, write_login
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import Settings, settings
from spark_jobs.storage.session import driver, spark_session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

PORTS = ("kafka_port", "kafka_controller_port", "metastore_port", "thrift_port")
TOPIC = "recording"
WITHIN = 600

TABLE = "delta.`{folder}/rows`"
SQL = (
    "create schema recording",
    f"create table {TABLE} (key string, day date, at timestamp, n bigint, x double, tags array<string>)"
    " using delta partitioned by (day)",
    f"insert into {TABLE} values ('a', date'2026-01-01', timestamp'2026-01-01 10:00:00', 1, 0.5, array('t')),"
    " ('b', date'2026-01-02', null, 2, null, null)",
    f"create or replace view recording.shown as select key, day, count(*) c, sum(n) n, max(x) x from {TABLE}"
    f" group by key, day union all select key, day, 1, n, x from {TABLE} where at is not null",
    "select shown.key, explode(transform(tags, tag -> upper(tag))), named_struct('n', shown.n).n, try_divide(c, 2),"
    f" row_number() over (partition by shown.day order by at desc) from recording.shown join {TABLE} rows"
    " on shown.key = rows.key where shown.key in ('a', 'b') order by 1 limit 5",
)


@dataclass
class Started:
    """A part that was started: its process, and the file with what it says."""

    part: Program
    process: "subprocess.Popen[bytes]"
    log: Path

    def wait(self) -> None:
        """Return when it is ready; SystemExit with its last words if it never is."""
        said = "nothing"
        for _ in range(WITHIN * 5):
            if self.process.poll() is not None:
                break
            try:
                self.part.ready()
                return
            except NotReady as error:
                said = str(error)
                time.sleep(0.2)
        raise SystemExit(f"{self.part.name} did not come up: {said}\n{self.log.read_text()[-2000:]}")


@contextmanager
def started(parts: list[Program]) -> Iterator[list[Started]]:
    """The parts, begun; in the end their JVMs are asked to end, and have ended: until then they write."""
    begun: list[Started] = []
    try:
        for part in parts:
            part.prepare()
            log = settings().tmp_dir / f"{part.name}.log"
            with log.open("wb") as written:
                process = subprocess.Popen(part.command, stdin=subprocess.DEVNULL, stdout=written, stderr=written)
            begun.append(Started(part, process, log))
        yield begun
    finally:
        tops = [psutil.Process(one.process.pid) for one in begun]
        every = [process for top in tops for process in (top, *top.children(recursive=True))]
        for one in begun:
            one.process.terminate()
        psutil.wait_procs(every, timeout=WITHIN)


@contextmanager
def session(here: Settings) -> Iterator["SparkSession"]:
    """A session whose JVM is told to end at its end."""
    own = {f"spark.hadoop.{key}": value for key, value in hive_properties(here).items()}
    write_login(here)
    jvm = driver(here, 1024, f"{here.batch_java_options} {login_options(here)}")
    spark = spark_session("tidemark-recording", **own, **jvm)
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    try:
        yield spark
        spark.stop()
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM of a Python process ends with its input


def record(here: Settings, parts: list[Started]) -> "subprocess.Popen[bytes]":
    """Statements through the Thrift server's door, rows through Python workers, a stream of Kafka.

    The answer is the process that writes Spark's classes now.
    """
    for one in parts:
        one.wait()  # a session looks for the metastore's token when it begins
    with session(here) as spark:
        _answer(spark)
        _ask(here)
        _read_topic(spark)
        gateway = spark.sparkContext._gateway
        assert gateway is not None
        writes: subprocess.Popen[bytes] = gateway.proc
    return writes


def _answer(spark: "SparkSession") -> None:
    jvm = spark._jvm
    assert jvm is not None
    jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2.startWithContext(spark._jsparkSession.sqlContext())


def _ask(here: Settings) -> None:
    from pyhive import hive

    with hive.connect(**thrift_login(here)) as connection:
        cursor = connection.cursor()
        for statement in SQL:
            cursor.execute(statement.format(folder=here.warehouse))
            if cursor.description:
                cursor.fetchall()


def _read_topic(spark: "SparkSession") -> None:
    from kafka import KafkaAdminClient, KafkaProducer
    from kafka.admin import NewTopic

    admin = KafkaAdminClient(bootstrap_servers=settings().kafka)
    admin.create_topics([NewTopic(TOPIC, 1, 1)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=settings().kafka)
    producer.send(TOPIC, b"value", b"key").get(timeout=WITHIN)
    producer.close()
    source = {"kafka.bootstrap.servers": settings().kafka, "subscribe": TOPIC, "startingOffsets": "earliest"}
    stream = spark.readStream.format("kafka").options(**source, includeHeaders="true").load()
    written = stream.writeStream.foreachBatch(_count).trigger(availableNow=True)
    written.option("checkpointLocation", str(settings().checkpoints / TOPIC)).start().awaitTermination()


def _count(batch: "DataFrame", number: int) -> None:
    batch.mapInArrow(_same, batch.schema).toArrow()


def _same(batches: "Iterable[pa.RecordBatch]") -> "Iterable[pa.RecordBatch]":
    yield from batches


def main() -> None:
    """Write `spark.jsa`, `kafka.jsa` and `metastore.jsa`; any error ends it with another exit code than 0."""
    ports = zip(PORTS, free_ports(len(PORTS)), strict=True)
    with tempfile.TemporaryDirectory(prefix="tidemark-") as home:
        os.environ.update({"TIDEMARK_HOME": home} | {f"TIDEMARK_{name.upper()}": str(p) for name, p in ports})
        here = settings()
        (here.tmp_dir / "hive-local").mkdir(parents=True)  # Hive looks into it at each session's end
        with started([program(here, name) for name in ("metastore", "broker")]) as parts:
            writes = record(here, parts)
        if writes.wait(WITHIN) != 0:
            raise SystemExit("the JVM of the Spark session failed")


if __name__ == "__main__":
    main()
