"""Spark sessions and Spark properties are made here and nowhere else.

infra/conf/spark-defaults.conf + settings -> properties -> a session, or the Thrift server's properties file.
"""

import importlib.util
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spark_jobs.settings import FOLDERS, ROOT, Settings, settings
from spark_jobs.storage.java import archived_classes, java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF = ROOT / "infra/conf"
JARS = ROOT / ".jars/spark"
LOGIN = ROOT / ".jars/login.jar"  # of infra/login.py; on every class path, as all share an archive of classes


def spark_home() -> Path:
    """PySpark's folder, which is a Spark distribution; found without importing it."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise RuntimeError("PySpark is not installed here: run `make setup`, then use ./tidemark")
    return Path(spec.origin).parent


def read_properties(file: Path) -> dict[str, str]:
    """Key -> value of a Spark properties file (`key value`, `#` starts a comment line)."""
    lines = (line.strip() for line in file.read_text().splitlines())
    pairs = (line.split(None, 1) for line in lines if line and not line.startswith("#"))
    return dict(pairs)


def spark_properties(settings: Settings) -> dict[str, str]:
    """What every Spark process of the platform is started with; no secrets, they show on command lines."""
    shared = read_properties(CONF / "spark-defaults.conf") | {
        "spark.hadoop.hive.metastore.uris": settings.metastore,
        "spark.hadoop.hive.metastore.sasl.enabled": str(settings.metastore_token is not None).lower(),
        "spark.sql.warehouse.dir": settings.warehouse,
        "spark.sql.shuffle.partitions": str(settings.cores),
        "spark.driver.extraClassPath": f"{JARS}/*:{LOGIN}",
    }
    shared |= {f"spark.executorEnv.{k}": v for k, v in settings.environment("project", *FOLDERS).items()}
    return shared | _embedded(settings) if settings.profile == "embedded" else shared


def _embedded(settings: Settings) -> dict[str, str]:
    """One machine: local cores, and every temporary file under `home`."""
    tmp = settings.tmp_dir
    own = ["-Duser.timezone=UTC", f"-Djava.io.tmpdir={tmp}", f"-Dderby.system.home={tmp}"]
    own.append(f"-Dlog4j2.configurationFile={CONF / 'log4j2.properties'}")
    if settings.metastore_token:
        own.append(f"-Dhadoop.token.files={settings.metastore_token}")
    return read_properties(CONF / "spark-embedded.conf") | {
        "spark.master": f"local[{settings.cores}]",
        "spark.local.dir": str(tmp),
        "spark.driver.extraJavaOptions": shlex.join((*own, *archived_classes("spark"))),  # split again by its launcher
        "spark.hadoop.hive.exec.scratchdir": f"{tmp}/hive",
        "spark.hadoop.hive.exec.local.scratchdir": f"{tmp}/hive-local",
        "spark.hadoop.hive.downloaded.resources.dir": f"{tmp}/hive-resources",
        "spark.hadoop.hive.querylog.location": f"{tmp}/hive-querylog",
    }


def spark_environment() -> dict[str, str]:
    """Environment variables that Spark reads before any property; set them where a Spark process starts."""
    local = {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_HOME": str(spark_home()),  # not another Spark of this machine, nor its configuration
        "SPARK_CONF_DIR": str(spark_home() / "conf"),  # not there: a folder of files bars archived classes
    }
    return (local if settings().profile == "embedded" else {}) | {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


def spark_session(app: str, **conf: str) -> "SparkSession":
    """The process's session, named `app`; `conf`: properties beside those of every Spark process."""
    from pyspark.sql import SparkSession

    os.environ.update(spark_environment())
    settings().tmp_dir.mkdir(parents=True, exist_ok=True)
    properties: dict[str, Any] = spark_properties(settings()) | conf
    session: SparkSession = SparkSession.builder.appName(app).config(map=properties).getOrCreate()
    return session


def driver(settings: Settings, memory_mb: int, java_options: str) -> dict[str, str]:
    """Properties of a driver's JVM: its heap, and options beside those that every JVM of the platform has."""
    shared = spark_properties(settings).get("spark.driver.extraJavaOptions", "")
    return {
        "spark.driver.memory": f"{memory_mb}m",
        "spark.driver.extraJavaOptions": f"{shared} {java_options}".strip(),
    }


@contextmanager
def batch_session(app: str, cores: int | None = None) -> Iterator["SparkSession"]:
    """The session of a job, which ends with it: its own memory and JVM options, and large Arrow batches.

    cores: how many it takes at most; None: as many as it gets.

    The JVM of a build hands out tasks, and does none of the work: in its minute or two the optimising compiler and the
    concurrent collector would take more time than they save.
    """
    conf = driver(settings(), settings().batch_memory_mb, settings().batch_java_options) | {
        "spark.sql.catalogImplementation": "in-memory",  # it knows tables by their paths
        "spark.sql.execution.arrow.maxRecordsPerBatch": "131072",
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
    }
    if cores is not None:
        embedded = settings().profile == "embedded"
        conf |= {"spark.master": f"local[{cores}]"} if embedded else {"spark.cores.max": str(cores)}
    spark = spark_session(app, **conf)
    try:
        yield spark
    finally:
        spark.stop()
