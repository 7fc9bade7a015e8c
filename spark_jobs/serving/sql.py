"""Ask the Thrift server: one statement in, rows and types out.

statement -> PyHive -> Answer. Alone: `tidemark sql "select * from orders_by_day limit 5"`.
"""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

from spark_jobs.serving.formatting import Answer
from spark_jobs.settings import settings

_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\s*:\s*")
_WRAPPER = re.compile(r"^Error (?:running|operating) (?:query|\w+)\s*:\s*")


class SqlError(Exception):
    """The server refused the statement, or cannot be reached; the text is one line."""


@contextmanager
def connect(schema: str = "default") -> Iterator[Any]:
    """A PyHive connection to the Thrift server of the settings. SqlError when it does not answer."""
    from pyhive import hive
    from thrift.transport.TTransport import TTransportException

    logging.getLogger("thrift").setLevel(logging.CRITICAL)  # it says on stderr what the error says again
    at = f"{settings().thrift}:{settings().thrift_port}"
    try:
        connection = hive.connect(
            host=settings().thrift, port=settings().thrift_port, username="tidemark", database=schema
        )
    except (TTransportException, OSError) as error:
        raise SqlError(f"the Thrift server at {at} does not answer ({error}); see `tidemark status`") from error
    except hive.Error as error:
        raise SqlError(message(error)) from error
    try:
        yield connection
    finally:
        connection.close()


def ask(connection: Any, statement: str) -> Answer:
    """Run one statement and fetch everything; instants come back with UTC as their zone."""
    from pyhive import hive

    cursor = connection.cursor(arraysize=20_000)
    try:
        cursor.execute(statement.strip().rstrip(";"))
        described = cursor.description or []
        rows = cursor.fetchall() if described else []
    except hive.Error as error:
        raise SqlError(message(error)) from error
    finally:
        cursor.close()
    types = tuple(column[1] for column in described)
    return Answer(tuple(column[0] for column in described), types, [_row(row) for row in rows])


def query(statement: str, schema: str = "serving") -> Answer:
    """`ask` on a connection of its own."""
    with connect(schema) as connection:
        return ask(connection, statement)


def _row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(value.replace(tzinfo=UTC) if isinstance(value, datetime) else value for value in row)


def message(error: Exception) -> str:
    """Spark's own words in one line: no Java class names, no stack, no query plan."""
    response = error.args[0] if error.args else None
    text = str(getattr(getattr(response, "status", None), "errorMessage", None) or error)
    lines = (line.strip() for line in text.split("== SQL")[0].splitlines())
    said = takewhile(lambda line: not line.startswith(("at ", "Caused by:", "'", "+-", "== ")), lines)
    short = " ".join(filter(None, said))
    while short != (short := _CLASS.sub("", _WRAPPER.sub("", short))):
        pass
    short = re.sub(r"^(\[[A-Z0-9_.]+\]) (?:[\w$]+\.)+[\w$]+: \1", r"\1", short)
    return re.sub(r"\s*; line \d+ pos \d+;?$", "", short)
