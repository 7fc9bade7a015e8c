"""Before a request is read: it needs a login, and its body is small. Only `/health` is open.

ASGI: scope with the user in its state, or an answer that says why not.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.responses import JSONResponse

from spark_jobs.query_server.logins import Logins
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.users import User

OPEN = "/health"
LONGEST = 1 << 20
"""Bytes of a request at most."""
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Guard:
    """Passes on what has a right login."""

    def __init__(self, app: App, logins: Logins) -> None:
        self._app, self._logins = app, logins
        self._one_at_a_time = CapacityLimiter(1)  # guessing takes one core at most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != OPEN:
            headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
            try:
                scope["state"] = {"user": await self._user(headers.get("authorization"))}
                _refuse_long(headers)
            except Refusal as refusal:
                await said(refusal)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _user(self, authorization: str | None) -> User:
        if (user := self._logins.remembered(authorization)) is not None:
            return user
        return await run_sync(self._logins.user, authorization, limiter=self._one_at_a_time)


def said(refusal: Refusal) -> JSONResponse:
    """A refusal as an answer."""
    headers = {"WWW-Authenticate": 'Basic realm="tidemark", charset="UTF-8"'} if refusal.kind == "login" else {}
    if refusal.kind == "busy":
        headers["Retry-After"] = "1"
    return JSONResponse({"error": {"kind": refusal.kind, "reason": str(refusal)}}, refusal.status, headers)


def _refuse_long(headers: dict[str, str]) -> None:
    length = headers.get("content-length", "0")
    if "transfer-encoding" in headers or not length.isdecimal() or int(length) > LONGEST:
        raise Refusal("too_large", f"the request has more than {LONGEST:,} bytes, or does not say how many")
