"""Become one part of the platform: the command that the supervisor runs.

`python -m infra.embedded.launch NAME`: end what is left of an earlier NAME, prepare, then exec the part's command, so
that the supervisor's child is the part itself.
"""

import os
import sys
from collections.abc import Mapping

from infra.embedded import leftovers
from infra.embedded.program import Program
from infra.embedded.programs import program
from spark_jobs.settings import ROOT, Settings, settings

LOCAL = "127.0.0.1,localhost"
# Variables of another Airflow, Spark, Hive or Kafka of this machine: they would outrank the files that configure ours.
FOREIGN = ("AIRFLOW_", "SPARK_", "PYSPARK_", "HADOOP_", "HIVE_", "KAFKA_")


def environment(settings: Settings, program: Program, inherited: Mapping[str, str]) -> dict[str, str]:
    """What the part is started with: its own variables, its mark, and no proxy on the way to its neighbours.

    Of the `inherited` ones, those that would configure it are left out.
    """
    kept = {name: value for name, value in inherited.items() if not name.startswith(FOREIGN)}
    proxies = {name: ",".join(filter(None, [inherited.get(name), LOCAL])) for name in ("NO_PROXY", "no_proxy")}
    mark = {leftovers.MARK: program.name, **settings.environment("home")}
    return {**kept, **proxies, **_locale(inherited), "PYTHONUNBUFFERED": "1", **program.environment, **mark}


def _locale(inherited: Mapping[str, str]) -> dict[str, str]:
    """A JVM takes the encoding of paths from the locale, and finds no home with an umlaut in one without UTF-8."""
    spoken = next(filter(None, map(inherited.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    is_utf8 = spoken.lower().replace("-", "").endswith("utf8")
    return {} if is_utf8 else {"LC_ALL": "C.UTF-8"}


def main() -> None:
    part = program(settings(), sys.argv[1])
    own = environment(settings(), part, os.environ)
    os.environ.clear()
    os.environ.update(own)
    for process in leftovers.end(settings().home, part.name):
        print(f"launch: ended {process}, left over from an earlier {part.name}", flush=True)
    part.prepare()
    os.chdir(ROOT)
    os.execvpe(part.command[0], part.command, os.environ)


if __name__ == "__main__":
    main()
