"""What makes a fact the same as another: 16 bytes of event type and event id.

event_id of facts -> of -> identity

A UUID: its 16 bytes, xor md5 of the event type; no two ids of a type can meet, and hashing each would cost a quarter of
all decoding. Any other id: md5 of "<type> <id>". No id: md5 of "<type> <lsn> <topic> <partition> <offset>", the place
in the log, so that the fact repeats nothing.
"""

from hashlib import md5

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.contracts.row_types import COORDINATES
from spark_jobs.engine.dedupe import WIDTH

_UUID_SIZE = 36
_DASHES = [8, 13, 18, 23]
_DIGITS = [place for place in range(_UUID_SIZE) if place not in _DASHES]
_VALUES = np.full(256, 16, np.uint8)  # of a hexadecimal digit; 16: it is none
_VALUES[[*b"0123456789abcdef"]] = np.arange(16)


def of(event_type: str, facts: pa.Table) -> pa.Array:
    """The identities of an event type's facts, in row order."""
    ids = facts["event_id"].combine_chunks()
    whole = np.flatnonzero(pc.binary_length(ids).fill_null(0).to_numpy() == _UUID_SIZE)
    words, sure = _uuids(ids if len(whole) == len(ids) else ids.take(pa.array(whole)))
    result = np.empty((len(ids), WIDTH), np.uint8)
    result[whole[sure]] = words[sure] ^ np.frombuffer(_hash(event_type), np.uint8)
    other = np.setdiff1d(np.arange(len(ids)), whole[sure], assume_unique=True)
    for row, text in zip(other.tolist(), ids.take(pa.array(other)).to_pylist(), strict=True):
        known = (text,) if text is not None else [facts[name][row] for name, _ in COORDINATES]
        result[row] = np.frombuffer(_hash(" ".join(map(str, (event_type, *known)))), np.uint8)
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(WIDTH), len(ids), [None, pa.py_buffer(result)])


def _hash(text: str) -> bytes:
    return md5(text.encode(), usedforsecurity=False).digest()


def _uuids(texts: pa.StringArray) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """(the 16 bytes of texts of a UUID's length, which of them are UUIDs in lower case)."""
    if not len(texts):
        return np.empty((0, WIDTH), np.uint8), np.empty(0, bool)
    _, offsets, data = texts.buffers()
    start = int(np.frombuffer(offsets, np.int32)[texts.offset])
    text = np.frombuffer(data, np.uint8, len(texts) * _UUID_SIZE, start).reshape(-1, _UUID_SIZE)
    values = _VALUES[text[:, _DIGITS]]
    sure = (text[:, _DASHES] == ord("-")).all(axis=1) & (values < 16).all(axis=1)
    return values[:, ::2] * np.uint8(16) + values[:, 1::2], sure
