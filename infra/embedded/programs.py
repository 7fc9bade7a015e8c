"""The parts of the embedded platform, in the order in which they are listed.

settings -> [Program]. Broker and metastore first; the Thrift server and the speed application need them; Airflow and
the read server start beside them; the generator, which the town alone has, only when it is asked for.
"""

import sys
from functools import partial

from infra.embedded import airflow, broker, thrift
from infra.embedded.passwords import passwords
from infra.embedded.program import Program, nothing
from infra.embedded.readiness import metastore_answers, query_answers, speed_answers
from spark_jobs.settings import ROOT, Settings
from spark_jobs.storage.session import spark_environment

HEARTBEATS_MISSED = 30


def programs(settings: Settings) -> list[Program]:
    """All parts; each one's `needs` come before it."""
    return [
        broker.program(settings),
        _metastore(settings),
        thrift.program(settings),
        _speed(settings),
        _query(settings),
        *airflow.programs(settings),
        *([_generator()] if settings.is_town else []),
    ]


def program(settings: Settings, name: str) -> Program:
    """The part called `name`; raises KeyError with the names that exist."""
    every = {program.name: program for program in programs(settings)}
    if name not in every:
        raise KeyError(f"there is no part called {name!r}; the parts are {', '.join(every)}")
    return every[name]


def _metastore(settings: Settings) -> Program:
    return Program(
        name="metastore",
        command=(sys.executable, "-m", "infra.embedded.metastore"),
        ready=partial(metastore_answers, settings),
        ports=("metastore_port",),
    )


def _speed(settings: Settings) -> Program:
    return Program(
        name="speed",
        command=(sys.executable, "-m", "spark_jobs.speed"),
        ready=partial(speed_answers, HEARTBEATS_MISSED * settings.heartbeat_seconds),
        needs=("broker", "thrift"),
        ports=("metrics_port",),
        environment=spark_environment(),
        patience=900,  # its start catches up with the log
        stop_within=40,
    )


def _prepare_query(settings: Settings) -> None:
    """See to it that there is a password."""
    passwords(settings)


def _query(settings: Settings) -> Program:
    return Program(
        name="query",
        command=(str(ROOT / ".venv/bin/tidemark"), "query-server"),
        ready=partial(query_answers, settings),
        ports=("query_port", "query_flight_port"),
        prepare=lambda: _prepare_query(settings),
        stop_within=10,
    )


def _generator() -> Program:
    return Program(
        name="generator",
        command=(str(ROOT / ".venv/bin/tidemark"), "generate"),
        ready=nothing,
        needs=("broker", "speed"),
        on_demand=True,
        stop_within=10,
    )
