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
from spark_jobs.settings import NoPassword, Settings, settings

_CLASS = re.compile(r"^(?:[\w$]+\.)+[\w$]*(?:Exception|Error)\s*:\s*")
_REFUSED = "Bad status: 3"  # SASL's BAD, as thrift_sasl shows it
_WRAPPER = re.compile(r"^Error (?:running|operating) (?:query|\w+)\s*:\s*")


class SqlError(Exception):
    """The server refused the statement, or cannot be reached; the text is one line."""


def thrift_login(settings: Settings) -> dict[str, Any]:
    """The arguments of `hive.connect`: where the Thrift server is, and who logs in."""
    login = {"username": settings.thrift_user, "password": settings.password("thrift"), "auth": "CUSTOM"}
    return {"host": settings.thrift, "port": settings.thrift_port, **login}


@contextmanager
def connect(schema: str = "default") -> Iterator[Any]:
    """A PyHive connection to the Thrift server of the settings. SqlError when it does not answer."""
    from pyhive import hive
    from thrift.transport.TTransport import TTransportException

    logging.getLogger("thrift").setLevel(logging.CRITICAL)  # it says on stderr what the error says again
    at = f"{settings().thrift}:{settings().thrift_port}"
    try:
        connection = hive.connect(**thrift_login(settings()), database=schema)
    except NoPassword as error:
        raise SqlError(str(error)) from error
    except (TTransportException, OSError) as error:
        if _REFUSED in str(error):
            hint = "TIDEMARK_THRIFT_USER and TIDEMARK_THRIFT_PASSWORD_FILE name the login"
            raise SqlError(f"the Thrift server at {at} refuses {settings().thrift_user}'s password; {hint}") from error
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
