"""Messages between the door and its workers: a head of JSON and a body of bytes, each behind its length."""

import json
import struct
from collections.abc import Mapping
from typing import Any, BinaryIO

LENGTHS = struct.Struct(">IQ")
NUMBER = struct.Struct(">I")
"""The number of a worker's process."""


def framed(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(head).encode()
    return LENGTHS.pack(len(text), len(body)) + text + body


def read(stream: BinaryIO) -> dict[str, Any] | None:
    """The head of the next message, of those that have no body; None at the end."""
    lengths = stream.read(LENGTHS.size)
    if len(lengths) < LENGTHS.size:
        return None
    head: dict[str, Any] = json.loads(stream.read(LENGTHS.unpack(lengths)[0]))
    return head
