"""The Spark Thrift Server: SQL for people, BI tools and dbt.

spark_properties + settings -> `home`/run/thrift.conf -> spark-submit of Spark's HiveThriftServer2.
Who logs in needs the password of `home`/run/thrift.login (mode 0600), which the class of `infra/login.py` reads.
"""

import shlex
from pathlib import Path

from infra.embedded.passwords import passwords, write_private
from infra.embedded.program import Program
from infra.embedded.readiness import thrift_answers
from spark_jobs.settings import Settings
from spark_jobs.storage.session import driver, spark_environment, spark_home, spark_properties

MAIN = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
LOGIN = "tidemark.PasswordLogin"


def program(settings: Settings) -> Program:
    return Program(
        name="thrift",
        command=(f"{spark_home()}/bin/spark-submit", *_arguments(settings)),
        ready=lambda: thrift_answers(settings),
        needs=("metastore",),
        ports=("thrift_port",),
        environment=spark_environment(),
        prepare=lambda: prepare(settings),
    )


def thrift_properties(settings: Settings) -> dict[str, str]:
    """The shared properties, and what only a process that serves readers may have."""
    jvm = driver(settings, settings.thrift_memory_mb, f"{settings.server_java_options} {login_options(settings)}")
    return (
        spark_properties(settings)
        | jvm
        | {
            "spark.app.name": "tidemark-thrift",
            # Most queries here read thousands of rows, which takes less time than compiling code for them. For
            # millions: SET spark.sql.codegen.factoryMode=FALLBACK.
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            # How old a Delta snapshot may be that a reader gets while a newer one is loaded.
            "spark.databricks.delta.stalenessLimit": f"{settings.stale_read_ms}ms",
        }
    )


def login_options(settings: Settings) -> str:
    """JVM options by which HiveServer2 finds the class that checks logins, and that the user and the password."""
    options = (f"-Dhive.server2.custom.authentication.class={LOGIN}", f"-Dtidemark.login={_login_file(settings)}")
    return shlex.join(options)


def prepare(settings: Settings) -> None:
    (settings.tmp_dir / "hive-local").mkdir(parents=True, exist_ok=True)  # Hive looks into it at each session's end
    write_login(settings)
    lines = (f"{key} {value}\n" for key, value in thrift_properties(settings).items())
    text = "".join(lines).replace("\\", "\\\\")  # in Java's files of properties a backslash is two
    _properties_file(settings).write_text(text, encoding="utf-8")


def write_login(settings: Settings) -> None:
    """Put down who may log in."""
    passwords(settings)
    write_private(_login_file(settings), f"{settings.thrift_user}\n{settings.password('thrift')}\n")


def _properties_file(settings: Settings) -> Path:
    return settings.run_dir / "thrift.conf"


def _login_file(settings: Settings) -> Path:
    return settings.run_dir / "thrift.login"


def hive_properties(settings: Settings) -> dict[str, str]:
    """HiveServer2's own: where it listens, and that it lets nobody in without a password."""
    return {
        "hive.server2.thrift.bind.host": settings.host,
        "hive.server2.thrift.port": str(settings.thrift_port),
        "hive.server2.logging.operation.enabled": "false",
        "hive.server2.authentication": "CUSTOM",
        "hive.server2.enable.doAs": "false",  # a session would ask the metastore for a token of its own
    }


def _arguments(settings: Settings) -> tuple[str, ...]:
    hive = hive_properties(settings)
    options = [argument for key, value in hive.items() for argument in ("--hiveconf", f"{key}={value}")]
    return ("--properties-file", str(_properties_file(settings)), "--class", MAIN, "spark-internal", *options)
