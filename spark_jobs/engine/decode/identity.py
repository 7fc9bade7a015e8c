"""What makes a fact the same as another: 16 bytes of event type and event id.

event_id of facts -> of -> identity

A UUID: its 16 bytes, xor md5 of the event type; no two ids of a type can meet, and hashing each would cost a quarter of
all decoding. Any other id: md5 of "<type> <id>". No id: md5 of "<type> <lsn> <topic> <partition> <offset>", the place
in the log, so that the fact repeats nothing.
"""

from hashlib import md5
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.contracts.row_types import COORDINATES
from spark_jobs.engine.decode.bulk.page import Mask, Words
from spark_jobs.engine.decode.bulk.proofs import all_between

WIDTH = 16
_UUID_SIZE = 36
_DASHES = (8, 13, 18, 23)


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


def _uuids(texts: pa.StringArray) -> tuple[NDArray[np.uint8], Mask]:
    """(the 16 bytes of texts of a UUID's length, which of them are UUIDs in lower case)."""
    text = _matrix(texts)
    digits = np.empty((len(text), 2 * WIDTH), np.uint8)
    for number, (begin, end) in enumerate(pairwise((-1, *_DASHES, _UUID_SIZE))):
        digits[:, begin + 1 - number : end - number] = text[:, begin + 1 : end]
    words = digits.view("<u8")
    sure = np.logical_and.reduce(text[:, _DASHES] == ord("-"), axis=1)
    sure &= np.logical_and.reduce(all_between(words, (b"0", b"9"), (b"a", b"f")), axis=1)
    return _unhex(words).view(np.uint8), sure


def _matrix(texts: pa.StringArray) -> NDArray[np.uint8]:
    """The bytes of texts of a UUID's length, one line each."""
    if not len(texts):
        return np.empty((0, _UUID_SIZE), np.uint8)
    _, offsets, data = texts.buffers()
    start = int(np.frombuffer(offsets, np.int32)[texts.offset])
    return np.frombuffer(data, np.uint8, len(texts) * _UUID_SIZE, start).reshape(-1, _UUID_SIZE)


def _unhex(words: Words) -> NDArray[np.uint32]:
    """Four bytes from eight hexadecimal digits: nibbles, then pairs of them, then pairs of pairs."""
    letters = words >> np.uint64(6) & np.uint64(0x0101010101010101)
    nibbles = (words & np.uint64(0x0F0F0F0F0F0F0F0F)) + np.uint64(9) * letters
    pairs = (nibbles << np.uint64(4) | nibbles >> np.uint64(8)) & np.uint64(0x00FF00FF00FF00FF)
    fours = (pairs | pairs >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
    return (fours | fours >> np.uint64(16)).astype(np.uint32)
