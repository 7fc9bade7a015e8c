"""One Spark session for all Spark tests, over an in-memory catalog; every test starts with empty tables."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import ACLOperation
from pyspark.sql import SparkSession

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.messaging import security, topics
from spark_jobs.publication.names import ensure_named
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.speed import land, partials_table
from spark_jobs.storage.session import driver, spark_session
from tests.secured_kafka import SecuredKafka, secured_kafka
from tests.spark.lake import Lake


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; `TIDEMARK_HOME` is a folder of its own."""
    patch = pytest.MonkeyPatch()
    patch.setenv("TIDEMARK_HOME", str(tmp_path_factory.mktemp("home")))
    patch.setenv("TIDEMARK_SERVED_SAMPLE_SECONDS", "0")  # one view of each publication; its own test asks for all
    settings.cache_clear()
    jvm = driver(settings(), 1500, settings().batch_java_options)
    session = spark_session("tidemark-tests", **jvm, **{"spark.sql.catalogImplementation": "in-memory"})
    _name_hot_tables(session)
    yield session
    session.stop()
    patch.undo()
    settings.cache_clear()


def _name_hot_tables(session: SparkSession) -> None:
    """A name is a path: once given, it holds for the tables of each test."""
    views = project_views()
    land.create()
    partials_table.create(list(views))
    ensure_named(lambda statement: session.sql(statement).collect(), views)
    shutil.rmtree(settings().warehouse)


ALLOWED, SEEN = "page_viewed", "order_placed"
RIGHTS = (ACLOperation.DESCRIBE, ACLOperation.DESCRIBE_CONFIGS, ACLOperation.READ, ACLOperation.WRITE)
# For a handful of rows, compiling the plans takes longer than running them; the end-to-end tests run compiled plans.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which interprets its plans."""
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    yield spark
    for name in INTERPRETED:
        spark.conf.unset(name)


@pytest.fixture
def lake(interpreted: SparkSession) -> Iterator[Lake]:
    """Empty tables, an empty ledger, and the means to land events."""
    spark, made = interpreted, Lake(interpreted)
    yield made
    made.store.close()
    # Names of tables stay: each is a path, and to give them all anew takes more than a second.
    for row in spark.sql("SHOW SCHEMAS").collect():
        if row[0] == "serving" or row[0].startswith("pin_"):
            spark.sql(f"DROP SCHEMA {row[0]} CASCADE")
    spark.catalog.clearCache()
    shutil.rmtree(settings().warehouse, ignore_errors=True)
    for file in Path(settings().home).glob("ledger.db*"):
        file.unlink()


Use = Callable[..., None]


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    """Its topics are made by who shows a certificate; the user who logs in by password may use one, and see another."""
    with secured_kafka(tmp_path_factory.mktemp("kafka")) as running:
        with pytest.MonkeyPatch.context() as patch:
            set_all(patch, running.doors["mutual"])
            assert ALLOWED in topics.create(project_contracts())
        settings.cache_clear()
        running.allow(ALLOWED, operations=RIGHTS)
        running.allow(SEEN, operations=(ACLOperation.DESCRIBE,))
        yield running


@pytest.fixture
def use(kafka: SecuredKafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    """Makes the platform's clients come in by one of the doors, with other settings where they are given.

    patience: seconds; short where a client would only find out again and again that it is not let in.
    """

    def use(door: str, patience: float = 60, **changes: Any) -> None:
        monkeypatch.setattr(security, "BOOTSTRAP_SECONDS", patience)
        set_all(monkeypatch, kafka.doors[door] | changes)

    yield use
    monkeypatch.undo()
    settings.cache_clear()


def set_all(patch: pytest.MonkeyPatch, changes: dict[str, Any]) -> None:
    """Settings, by their names."""
    for name, value in changes.items():
        patch.setenv(f"TIDEMARK_{name.upper()}", str(value))
    settings.cache_clear()
