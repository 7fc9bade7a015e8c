"""Who a request is of: HTTP Basic, or a bearer token, which is name.password.

What was once found right is remembered by a digest, as scrypt takes a good part of a second on purpose.
"""

import base64
import hmac
import secrets
from collections.abc import Mapping
from typing import cast

from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.users import SALT, Role, User, UsersError, hashed, known
from spark_jobs.settings import Settings

Known = tuple[dict[str, dict[str, str]], dict[bytes, User]]
"""The users of a file, and the digests of those logins that were right by it."""


class Logins:
    """Says who a request is of."""

    def __init__(self, settings: Settings) -> None:
        self._file, self._own = settings.query_users, settings.query_user
        self._password = settings.password("query")
        self._key = secrets.token_bytes(32)
        self._read_at: object = None
        self._known: Known = ({}, {})

    def user(self, authorization: str | None) -> User:
        """The user of a header's Basic or Bearer login. Refusal."""
        name, password = _login(authorization or "")
        users, right = self._read()
        user = right[self._digest(authorization)] = self._checked(name, password, users)
        return user

    def token(self, authorization: str | None) -> str:
        """The header's login as a bearer token, for clients that log in once. Refusal."""
        return f"Bearer {'.'.join(_login(authorization or ''))}"

    def remembered(self, authorization: str | None) -> User | None:
        """The same, of a login that was right before; None where it has to be checked. Refusal."""
        return self._read()[1].get(self._digest(authorization))

    def _digest(self, authorization: str | None) -> bytes:
        return hmac.digest(self._key, (authorization or "").encode(), "sha256")

    def _read(self) -> Known:
        """What is known of the file as it is now; where it has changed, who was right before has to show it again.

        A login that is held to the file of before when another comes is remembered with it, and so forgotten.
        """
        at = (self._file.stat().st_mtime_ns, self._file.stat().st_ino) if self._file.exists() else None
        if at != self._read_at:
            try:
                self._known = known(self._file), {}
            except UsersError as error:
                raise Refusal("broken", f"nobody can log in: {error}") from error
            self._read_at = at
        return self._known

    def _checked(self, name: str, password: str, users: Mapping[str, dict[str, str]]) -> User:
        if name == self._own and hmac.compare_digest(password.encode(), self._password.encode()):
            return User(name, "admin")
        user = users.get(name, {"role": "", "salt": "00" * SALT, "scrypt": ""})
        shown = hashed(password, bytes.fromhex(user["salt"])).hex()
        if user["role"] and hmac.compare_digest(shown, user["scrypt"]):
            return User(name, cast(Role, user["role"]))
        raise Refusal("login", "this login is wrong: TIDEMARK_QUERY_USER and TIDEMARK_QUERY_PASSWORD_FILE name it")


def _login(authorization: str) -> tuple[str, str]:
    scheme, _, value = authorization.partition(" ")
    padded = value + "=" * (-len(value) % 4)  # Arrow's clients in Go leave it out
    try:
        text = base64.b64decode(padded, validate=True).decode() if scheme.lower() == "basic" else value
    except ValueError:
        text = ""
    mark = {"basic": ":", "bearer": "."}.get(scheme.lower(), "")
    if not mark or mark not in text:
        raise Refusal("login", "log in by HTTP Basic, or by Bearer with the token name.password")
    name, _, password = text.partition(mark)
    return name, password
