"""The users of the read server beside the one that was made with the platform, and what a role may do.

`home`/query-users.json, mode 0600: name -> role, and scrypt's hash of the password. `tidemark users` writes it.
"""

import hashlib
import json
import os
import re
import secrets
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from spark_jobs.query_server.refusal import Refusal

Role = Literal["analyst", "service", "admin"]
Right = Literal["select", "key", "statements"]
ROLES: Mapping[Role, frozenset[Right]] = {
    "analyst": frozenset({"select"}),
    "service": frozenset({"select", "key"}),
    "admin": frozenset({"select", "key", "statements"}),
}
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
COST = {"n": 1 << 14, "r": 8, "p": 1}
SALT = 16


class UsersError(ValueError):
    """The file of users cannot be used, or no user can be made so; the text names what is wrong."""


@dataclass(frozen=True)
class User:
    name: str
    role: Role

    def refuse_without(self, right: Right) -> None:
        if right not in ROLES[self.role]:
            able = ", ".join(role for role, rights in ROLES.items() if right in rights)
            raise Refusal("forbidden", f"{self.name} is {self.role}; this needs one of: {able}")


def add(file: Path, name: str, role: str, password: str | None = None) -> str:
    """Write a user into the file, or in the place of one; returns the password, which is generated if none is given."""
    if not NAME.fullmatch(name):
        raise UsersError(f"{name!r} cannot name a user: small letters, digits, _ and -, a letter first, at most 32")
    if role not in get_args(Role):
        raise UsersError(f"{role!r} is no role; there are {', '.join(get_args(Role))}")
    password = password or secrets.token_urlsafe(24)
    salt = secrets.token_bytes(SALT)
    user = {"role": role, "salt": salt.hex(), "scrypt": hashed(password, salt).hex()}
    _write(file, known(file) | {name: user})
    return password


def remove(file: Path, name: str) -> None:
    users = known(file)
    if users.pop(name, None) is None:
        raise UsersError(f"no user is called {name}; there are {', '.join(users) or 'none'}")
    _write(file, users)


def known(file: Path) -> dict[str, dict[str, str]]:
    """The users of the file; none where there is none. UsersError where others can read it, or it is no such file."""
    if not file.exists():
        return {}
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise UsersError(f"{file} can be read by others: chmod 600 {file}")
    try:
        users: dict[str, dict[str, str]] = json.loads(file.read_text("utf-8"))
        for name, user in users.items():
            if user["role"] not in get_args(Role) or not (user["salt"] and user["scrypt"]):
                raise UsersError(f"{file}: {name} has the role {user['role']!r}; there are {', '.join(get_args(Role))}")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, UsersError):
            raise
        raise UsersError(f"{file} is no file of users: {type(error).__name__} {error}") from error
    return users


def hashed(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=COST["n"], r=COST["r"], p=COST["p"])


def _write(file: Path, users: Mapping[str, Mapping[str, str]]) -> None:
    incoming = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(incoming, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(users, out, indent=2)
    incoming.rename(file)
