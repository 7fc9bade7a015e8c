"""C1: a Kafka with logins, TLS and ACLs is used end to end, and each refusal says why; nothing is lost by one."""

from contextlib import closing
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging import security, topics
from spark_jobs.messaging.broker import Broker
from spark_jobs.messaging.producer import Producer, Record, SendError
from spark_jobs.messaging.security import KafkaRefused
from spark_jobs.messaging.topics import TopicsError
from spark_jobs.settings import settings
from tests.certificates import DAY
from tests.secured_kafka import USERS, SecuredKafka
from tests.spark.conftest import ALLOWED, SEEN, Use

FORBIDDEN = "vitals_measured"


def _send(topic: str, *values: bytes) -> int:
    with Producer() as producer:
        return producer.send(Record(topic, None, value) for value in values)


class Reader:
    """One query of the topic, whose checkpoint outlives its failures; `values` are what it has read so far."""

    def __init__(self, spark: SparkSession, folder: Path, topic: str = ALLOWED) -> None:
        self._spark, self._folder, self._topic = spark, folder, topic
        self.values: list[bytes] = []
        self.plan = ""

    def read(self) -> list[bytes]:
        source = self._spark.readStream.format("kafka").options(**security.spark_options())
        rows = source.option("subscribe", self._topic).option("startingOffsets", "earliest").load()
        written = rows.writeStream.foreachBatch(self._take).option("checkpointLocation", str(self._folder))
        written.trigger(availableNow=True).start().awaitTermination()
        return self.values

    def _take(self, batch: DataFrame, _: int) -> None:
        self.plan += batch._jdf.queryExecution().toString()
        self.values += [row.value for row in batch.select("value").collect()]


def test_c1_a_login_by_scram_over_tls_sends_asks_and_reads(use: Use, spark: SparkSession, tmp_path: Path) -> None:
    use("secured")
    reader = Reader(spark, tmp_path)
    before = len(reader.read())
    assert _send(ALLOWED, b"1", b"2") == 2
    with closing(Broker([ALLOWED])) as broker:
        ids, partitions = broker.partitions()
        assert sum(until for _, until in broker.available(partitions).values()) == before + 2
        assert (set(ids), set(broker.retention_ms([ALLOWED]))) == ({ALLOWED}, {ALLOWED})
    assert sorted(reader.read()[before:]) == [b"1", b"2"]


def test_c1_no_plan_of_spark_shows_the_password(use: Use, spark: SparkSession, tmp_path: Path) -> None:
    use("secured")
    _send(ALLOWED, b"seen")
    reader = Reader(spark, tmp_path)
    assert b"seen" in reader.read()
    assert "value" in reader.plan
    files = [file.read_text(errors="replace") for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(security.quoted(USERS["tidemark"])[1:-1] in text for text in (reader.plan, *files))


def test_c1_a_certificate_in_place_of_a_password_does(use: Use, spark: SparkSession, tmp_path: Path) -> None:
    use("mutual")
    _send(ALLOWED, b"by certificate")
    assert b"by certificate" in Reader(spark, tmp_path).read()


def test_c1_a_wrong_password_is_named_and_nothing_is_lost(use: Use, spark: SparkSession, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong")
    reader = Reader(spark, tmp_path / "checkpoint")
    use("secured")
    before = len(reader.read())
    _send(ALLOWED, b"kept")
    use("secured", patience=2, kafka_password_file=wrong)
    with pytest.raises(KafkaRefused, match=r"does not let User:tidemark in by SCRAM-SHA-512.*wrong is wrong"):
        Broker([ALLOWED])
    with pytest.raises(SendError, match="does not let User:tidemark in"):
        _send(ALLOWED, b"never sent")
    with pytest.raises(TopicsError, match="does not let User:tidemark in"):
        topics.create(project_contracts())
    with pytest.raises(StreamingQueryException) as refused:
        reader.read()
    assert "does not let User:tidemark in" in security.explained(refused.value)
    use("secured")
    assert reader.read()[before:] == [b"kept"]


def test_c1_an_expired_certificate_of_the_broker_is_named(use: Use, spark: SparkSession, tmp_path: Path) -> None:
    use("expired", patience=2)
    with pytest.raises(KafkaRefused, match="broker's certificate is not accepted, certificate has expired"):
        Broker([ALLOWED])
    with pytest.raises(SendError, match="certificate has expired"):
        _send(ALLOWED, b"never sent")
    with pytest.raises(StreamingQueryException) as refused:
        Reader(spark, tmp_path).read()
    assert "certificate has expired" in security.explained(refused.value)


def test_c1_an_expired_certificate_of_the_client_is_named(use: Use, kafka: SecuredKafka) -> None:
    certificate, key, _ = kafka.authority.issue("late", -DAY)
    use("mutual", patience=2, kafka_certificate_file=certificate, kafka_key_file=key)
    with pytest.raises(KafkaRefused, match=r"TLS fails.*CERTIFICATE.*FILE name the client's; has it expired"):
        Broker([ALLOWED])


def test_c1_a_missing_acl_is_named_with_its_topic(use: Use, spark: SparkSession, tmp_path: Path) -> None:
    use("mutual")
    _send(SEEN, b"another's")
    use("secured")
    with pytest.raises(SendError, match=f"does not allow User:tidemark to use topic {FORBIDDEN}.*ACL"):
        _send(FORBIDDEN, b"never sent")
    with pytest.raises(SendError, match=f"does not allow User:tidemark to use topic {SEEN}.*ACL"):
        _send(SEEN, b"never sent")
    with pytest.raises(StreamingQueryException) as refused:
        Reader(spark, tmp_path, SEEN).read()
    assert f"does not allow User:tidemark to use topic {SEEN}" in security.explained(refused.value)


def test_c1_a_topic_that_we_may_not_see_is_not_taken_for_one_that_is_gone(use: Use) -> None:
    use("secured")
    with (
        closing(Broker([ALLOWED, FORBIDDEN])) as broker,
        pytest.raises(KafkaRefused, match=f"topic {FORBIDDEN}.*ACL"),
    ):
        broker.partitions()


def test_c1_profile_cluster_speaks_no_plaintext_unless_told(use: Use, monkeypatch: pytest.MonkeyPatch) -> None:
    use("secured", profile="cluster", kafka_security_protocol="PLAINTEXT")
    with pytest.raises(KafkaRefused, match="TIDEMARK_KAFKA_ALLOW_PLAINTEXT"):
        security.client()
    with pytest.raises(KafkaRefused, match="TIDEMARK_KAFKA_SECURITY_PROTOCOL"):
        security.spark_options()
    monkeypatch.setenv("TIDEMARK_KAFKA_ALLOW_PLAINTEXT", "true")
    settings.cache_clear()
    assert security.client()["security_protocol"] == "PLAINTEXT"
