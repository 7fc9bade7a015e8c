"""Who calls by Flight, and how a refusal looks there.

headers of a call -> the user, for each call; a refusal -> an error of Flight's.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from pyarrow import flight

from spark_jobs.query_server.logins import Logins
from spark_jobs.query_server.refusal import Kind, Refusal
from spark_jobs.query_server.users import User

ERRORS: Mapping[Kind, type[Exception]] = {
    "login": flight.FlightUnauthenticatedError,
    "forbidden": flight.FlightUnauthorizedError,
    "too_long": flight.FlightTimedOutError,
    "busy": flight.FlightUnavailableError,
    "broken": flight.FlightInternalError,
}
"""The others are `FlightServerError`: errors that are not of Flight reach the client with Python's traceback."""


class Login(flight.ServerMiddleware):
    """Who calls, and by which headers; what a handshake gives back is what the client sends from then on."""

    def __init__(self, user: User, headers: Mapping[str, str], given: Mapping[str, str]) -> None:
        self.user, self.headers, self._given = user, headers, given

    def sending_headers(self) -> Mapping[str, str]:
        return self._given


class ByLogin(flight.ServerMiddlewareFactory):
    """Nothing is answered without a right login, Basic or Bearer."""

    def __init__(self, logins: Logins) -> None:
        self._logins, self._one_at_a_time = logins, Lock()  # guessing takes one core at most

    def start_call(self, info: flight.CallInfo, headers: Mapping[str, list[str]]) -> Login:
        given = {name.lower(): str(values[0]) for name, values in headers.items() if values}
        login = given.get("authorization")
        with saying():
            user = self._logins.remembered(login)
            if user is None:
                with self._one_at_a_time:
                    user = self._logins.user(login)
            is_first = info.method == flight.FlightMethod.HANDSHAKE
            return Login(user, given, {"authorization": self._logins.token(login)} if is_first else {})


class Open(flight.ServerAuthHandler):
    """The handshake is the middleware's."""

    def authenticate(self, outgoing: object, incoming: object) -> None:
        pass

    def is_valid(self, token: bytes) -> bytes:
        return b""


@contextmanager
def saying() -> Iterator[None]:
    """A refusal as an error of Flight's."""
    try:
        yield
    except Refusal as refusal:
        raise ERRORS.get(refusal.kind, flight.FlightServerError)(str(refusal)) from None
