"""What the read server answers instead of rows: a kind that programs know, its HTTP status, and a sentence."""

from typing import Literal

Kind = Literal[
    "refused", "failed", "unknown", "login", "forbidden", "too_long", "too_large", "out_of_memory", "busy", "broken"
]
STATUS: dict[Kind, int] = {
    "refused": 400,  # the statement is not one that this door takes
    "failed": 400,  # the engine says no to it
    "login": 401,
    "forbidden": 403,
    "unknown": 404,
    "too_long": 408,
    "too_large": 413,
    "out_of_memory": 413,
    "broken": 500,
    "busy": 503,
}


class Refusal(Exception):
    """No rows, for this reason."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind: Kind = kind

    @property
    def status(self) -> int:
        return STATUS[self.kind]
