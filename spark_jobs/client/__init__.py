"""Ask the read server from Python: rows as Arrow, Polars, pandas, or plain values, with what they are worth.

    from spark_jobs.client import connect

    with connect() as door:
        answer = door.sql("SELECT day, sum(orders) AS orders FROM orders_by_day GROUP BY day")
        polars.DataFrame(answer), answer.meta["lsn"]

Standard library alone until rows are wanted as one of these.
"""

import base64
import json
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, RemoteDisconnected
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

from spark_jobs.settings import NoPassword, Settings, settings

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Values = Sequence[str | int | float | bool | None]
SECONDS = 600.0
"""How long an answer is awaited: the server's own limit comes first."""


class DoorError(Exception):
    """The read server refused, or cannot be reached; the text is one line. kind: the server's word for it."""

    def __init__(self, reason: str, kind: str = "silent") -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True)
class Rows:
    """An answer, as an Arrow stream: whatever takes Arrow's C streams takes it, as `polars.DataFrame(rows)`.

    meta: publication, cut, lsn, as_of, and `read`, the same of each table.
    """

    stream: bytes

    def arrow(self) -> "pa.Table":
        import pyarrow as pa

        with pa.ipc.open_stream(self.stream) as stream:
            table: pa.Table = stream.read_all()
        return table

    def pandas(self) -> "pd.DataFrame":
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow().__arrow_c_stream__(requested_schema)

    @property
    def meta(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(self.arrow().schema.metadata[b"tidemark"])
        return said


class Door:
    """A connection, by which one asks at a time."""

    def __init__(self, url: str, user: str, password: str, ca_file: str | None) -> None:
        at = urlsplit(url)
        self._at = f"{at.hostname}:{at.port}"
        self._login = base64.b64encode(f"{user}:{password}".encode()).decode()
        trusted = ssl.create_default_context(cafile=ca_file) if at.scheme == "https" else None
        self._connection = (
            HTTPSConnection(str(at.hostname), at.port, timeout=SECONDS, context=trusted)
            if trusted
            else HTTPConnection(str(at.hostname), at.port, timeout=SECONDS)
        )

    def __enter__(self) -> "Door":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def sql(self, statement: str, schema: str = "serving", as_of: str | None = None, values: Values = ()) -> Rows:
        """The rows of one SELECT; `values`: one for each `?`. DoorError."""
        return Rows(self._ask_sql(statement, schema, as_of, values, "arrow"))

    def values(
        self, statement: str, schema: str = "serving", as_of: str | None = None, values: Values = ()
    ) -> dict[str, Any]:
        """The same as the server's JSON: `meta`, `columns`, `rows`; numbers that are no integers are Decimals."""
        return _parsed(self._ask_sql(statement, schema, as_of, values, "json"))

    def lists(
        self, statement: str, schema: str = "serving", as_of: str | None = None, values: Values = ()
    ) -> dict[str, Any]:
        """The same with a list for each row, in the order of `columns`, of which two may have one name."""
        return _parsed(self._ask_sql(statement, schema, as_of, values, "lists"))

    def key(self, view: str, schema: str = "serving", as_of: str | None = None, **key: object) -> Rows:
        """The rows of a view whose keys have these values. DoorError."""
        if absent := [name for name, value in key.items() if value is None]:
            raise DoorError(f"a key is looked up by its value, and {', '.join(absent)} has none", "refused")
        given = {name: str(value) for name, value in key.items()} | {"format": "arrow", "schema": schema}
        given |= {} if as_of is None else {"as_of": as_of}
        return Rows(self._ask("GET", f"/views/{quote(view, safe='')}?{urlencode(given)}"))

    def views(self, schema: str = "serving") -> list[dict[str, Any]]:
        """The views, with their keys and columns. DoorError."""
        listed: list[dict[str, Any]] = json.loads(self._ask("GET", f"/views?{urlencode({'schema': schema})}"))["views"]
        return listed

    def _ask_sql(self, statement: str, schema: str, as_of: str | None, values: Values, form: str) -> bytes:
        asked = {"statement": statement, "schema": schema, "as_of": as_of, "values": [*values], "format": form}
        return self._ask("POST", "/sql", asked)

    def _ask(self, method: str, path: str, asked: Mapping[str, Any] | None = None) -> bytes:
        body = None if asked is None else json.dumps(asked).encode()
        headers = {"Authorization": f"Basic {self._login}", "Content-Type": "application/json"}
        try:
            answer, said = self._answer(method, path, body, headers)
        except (OSError, HTTPException) as error:
            self._connection.close()
            why = f"does not answer ({error or type(error).__name__}); see `tidemark status`"
            raise DoorError(f"the read server at {self._at} {why}") from error
        if answer.status != 200:
            raise _refusal(answer.status, said)
        return said

    def _answer(self, *request: Any) -> tuple[HTTPResponse, bytes]:
        """The server closes a connection that was idle for a while: then on a new one, as asking changes nothing."""
        try:
            self._connection.request(*request)
            answer = self._connection.getresponse()
        except (BrokenPipeError, ConnectionResetError, RemoteDisconnected):
            self._connection.close()
            self._connection.request(*request)
            answer = self._connection.getresponse()
        return answer, answer.read()


def _parsed(said: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(said, parse_float=Decimal)
    return answer


def connect(
    url: str | None = None, user: str | None = None, password: str | None = None, ca_file: str | None = None
) -> Door:
    """A door to the read server; what is not given is the settings'. DoorError where there is no password."""
    known: Settings = settings()
    try:
        password = known.password("query") if password is None else password
    except NoPassword as error:
        raise DoorError(str(error)) from error
    trusted = ca_file or (str(known.query_ca_file) if known.query_ca_file else None)
    return Door(url or known.query_url, user or known.query_user, password, trusted)


def _refusal(status: int, said: bytes) -> DoorError:
    try:
        error = json.loads(said)["error"]
        return DoorError(error["reason"], error["kind"])
    except (ValueError, KeyError, TypeError):
        return DoorError(f"the read server answers {status}: {said[:200].decode(errors='replace')}")
