"""One Spark session for all Spark tests, over an in-memory catalog; every test starts with empty tables."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.publication.names import ensure_named
from spark_jobs.registry.views import project_views
from spark_jobs.settings import settings
from spark_jobs.speed import land, partials_table
from spark_jobs.storage.session import driver, spark_session
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
