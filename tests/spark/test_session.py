"""What a JVM of the platform is started with: the class path, and the classes archived for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from spark_jobs.storage import java
from spark_jobs.storage.session import spark_home

pytestmark = pytest.mark.spark


def test_the_list_of_hives_functions_can_be_read(spark: SparkSession) -> None:
    """The Thrift server may read it when it closes a session: while another session opens the metastore's client."""
    jvm = spark._jvm
    assert jvm is not None
    jvm.java.lang.Class.forName("org.apache.hadoop.hive.ql.exec.FunctionRegistry")


def test_a_replay_takes_no_more_cores_than_it_may(tmp_path: Path) -> None:
    asked = "from spark_jobs.storage.session import batch_session as s\nwith s('a replay', 1) as spark: "
    script = f"{asked}print(spark.sparkContext.master, spark.sparkContext.defaultParallelism)"
    environment = os.environ | {"TIDEMARK_HOME": str(tmp_path), "TIDEMARK_CORES": "2"}
    said = subprocess.run([sys.executable, "-c", script], env=environment, check=True, capture_output=True, text=True)
    assert said.stdout.split() == ["local[1]", "1"]


def test_a_machine_that_slept_for_a_day_has_lost_no_executor(spark: SparkSession) -> None:
    """It is the driver's own process; turned out, it ends the JVM ten minutes later with exit code 56."""
    jvm = spark._jvm
    assert jvm is not None
    limit = jvm.org.apache.spark.SparkEnv.get().conf().getTimeAsMs("spark.storage.blockManagerHeartbeatTimeoutMs", "2m")
    assert limit > 24 * 3600 * 1000


@pytest.mark.skipif(not psutil.LINUX, reason="what a process maps is shown by Linux alone")
def test_a_session_maps_the_archived_classes(spark: SparkSession) -> None:
    """A JVM that refuses an archive (another class path, a folder of files on it) says so, and does not map it."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    mapped = {file.path for file in psutil.Process(gateway.proc.pid).memory_maps()}
    assert str(java.ARCHIVES / "spark.jsa") in mapped


def test_an_archive_of_other_jars_leaves_stdout_to_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """py4j reads a port from it."""
    jar = shutil.copy(next((spark_home() / "jars").glob("ivy-*.jar")), tmp_path)
    monkeypatch.setattr(java, "ARCHIVES", tmp_path)

    def run() -> "subprocess.CompletedProcess[str]":
        command = [str(java.find_java()), *java.archived_classes("ivy"), "-cp", jar, "org.apache.ivy.Main", "-version"]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    with monkeypatch.context() as recording:
        recording.setenv(java.RECORD, str(tmp_path))
        run()
    fits = run()
    os.utime(jar, (0, 0))
    refused = run()
    assert ("shared archive" in fits.stderr, "shared archive" in refused.stderr) == (False, True)
    assert refused.stdout == fits.stdout
