"""The two doors that answer SQL, asked as a client asks them, and a generator beside."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from spark_jobs.client import connect
from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import ROOT
from tests.platform import Platform

Ask = Callable[[str], int]
"""Ask one statement; returns how many rows came."""


@contextmanager
def thrift(place: Platform) -> Iterator[Ask]:
    """A connection to the Thrift server."""
    from pyhive import hive

    with hive.connect(**thrift_login(place.settings)) as connection:
        cursor = connection.cursor()

        def ask(statement: str) -> int:
            cursor.execute(statement)
            return len(cursor.fetchall())

        yield ask


@contextmanager
def read_server(place: Platform) -> Iterator[Ask]:
    """A connection to the read server."""
    own = place.settings
    with connect(own.query_url, own.query_user, own.password("query")) as door:
        yield lambda statement: door.sql(statement).arrow().num_rows


DOORS: dict[str, Callable[[Platform], AbstractContextManager[Ask]]] = {"thrift": thrift, "read server": read_server}


@contextmanager
def under_load(place: Platform, rate: int) -> Iterator[None]:
    """So many events a second come meanwhile."""
    command = [ROOT / "tidemark", "generate", "--rate", str(rate), "--seed", str(rate)]
    with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL) as generator:
        try:
            yield
        finally:
            generator.terminate()
