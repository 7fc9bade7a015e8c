"""A block of records as one byte buffer, and where the quotes of its JSON are: what layouts are matched against.

values -> Page. Nothing here looks at one record at a time, except where bytes are no UTF-8.

Reading eight bytes at once: `words[i]` is the little-endian integer of data[i:i+8], for every i. Eight bytes in one
register can be compared, range-checked and turned into a number by a few integer operations (SIMD within a register;
see "Faster integer parsing", Ivan Kudryavtsev, and Hacker's Delight, section 7-3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

CACHED = 32_768  # elements of a temporary array that still fits a core's own cache
PAD = 32  # zero bytes before and after, so that no read of a word leaves the buffer
QUOTE, BACKSLASH, SPACE, BEYOND_ASCII = 0x22, 0x5C, 0x20, 0x80

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]
Words = NDArray[np.uint64]


class Literals:
    """Byte strings cut into words: of which literal, from which byte, the eight bytes, and which of them count."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        cut = [(number, place) for number, text in enumerate(literals) for place in _places(len(text))]
        words = [literals[number][place : place + 8] for number, place in cut]
        self.number = np.array([number for number, _ in cut])
        self.place = np.array([place for _, place in cut])[:, None]
        self.word = np.array([int.from_bytes(word, "little") for word in words], np.uint64)[:, None]
        self.mask = np.array([(1 << 8 * len(word)) - 1 for word in words], np.uint64)[:, None]


@dataclass(frozen=True)
class Page:
    """Positions are offsets into `data`; rows are counted from 0 within the block."""

    data: NDArray[np.uint8]
    words: Words
    starts: Index
    ends: Index
    quotes: Index  # of every quote that no backslash escapes
    first_quote: Index  # per row: index into `quotes` of its first
    quote_count: Index
    clean: Mask  # per row: UTF-8, and no control characters (which JSON strings must escape)
    escaped: Mask | None  # per row: has a backslash; None: no row has
    ascii: bool

    def record(self, row: int) -> bytes:
        return self.data[self.starts[row] : self.ends[row]].tobytes()

    def hold(self, literals: Literals, at: Index) -> Mask:
        """In which rows all literals stand at their positions (one line a literal)."""
        same = np.ones(at.shape[1], bool)
        for some in together(len(literals.word), at.shape[1]):
            found = self.words[at[literals.number[some]] + literals.place[some]]
            same &= np.logical_and.reduce((found & literals.mask[some]) == literals.word[some])
        return same

    def strings(self, begin: Index, end: Index) -> pa.StringArray:
        """The text between positions, which ascend from row to row. Copies the bytes once."""
        size = len(begin)
        if not size:
            return pa.array([], pa.string())
        bounds = np.empty(2 * size, np.int32)
        bounds[0::2], bounds[1::2] = begin, end  # text, gap, text, gap, ..., text over the page's own bytes
        both = pa.StringArray.from_buffers(2 * size - 1, pa.py_buffer(bounds), pa.py_buffer(self.data))
        return both.take(pa.array(np.arange(0, 2 * size - 1, 2)))


def read(values: pa.BinaryArray) -> Page:
    """The page of a block of values; a null is an empty record."""
    _, offsets_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offsets_buffer, np.int32, len(values) + 1, values.offset * 4).astype(np.int64)
    size = int(offsets[-1] - offsets[0])
    text = memoryview(data_buffer)[offsets[0] : offsets[-1]] if size else b""
    raw = b"".join((bytes(PAD), text, bytes(PAD)))
    data = np.frombuffer(raw, np.uint8)
    bounds = offsets - offsets[0] + PAD
    starts, ends = bounds[:-1], bounds[1:]
    backslashes = np.flatnonzero(data == BACKSLASH) if b"\\" in raw else np.empty(0, np.int64)
    quotes = _unescaped(np.flatnonzero(data == QUOTE), backslashes)
    first_quote = np.searchsorted(quotes, bounds)
    clean = np.ones(len(starts), bool)
    if data[PAD : PAD + size].min(initial=SPACE) < SPACE:
        clean[_rows_of(np.flatnonzero(data[PAD : PAD + size] < SPACE) + PAD, starts)] = False
    if not raw.isascii():
        clean[_broken_text(data, starts, ends)] = False
    return Page(
        data=data,
        words=np.ndarray((len(data) - 7,), "<u8", data, strides=(1,)),
        starts=starts,
        ends=ends,
        quotes=quotes,
        first_quote=first_quote[:-1],
        quote_count=np.diff(first_quote),
        clean=clean,
        escaped=_having(backslashes, starts) if backslashes.size else None,
        ascii=raw.isascii(),
    )


def together(lines: int, size: int) -> Iterator[slice]:
    """Slices of `lines` arrays to work on at once: few calls where short, little memory where long."""
    step = max(1, CACHED // max(size, 1))
    return (slice(start, start + step) for start in range(0, lines, step))


def _places(size: int) -> list[int]:
    """Where the words of a text begin; the last may overlap the one before."""
    return [0] if size <= 8 else [*range(0, size - 8, 8), size - 8]


def _rows_of(positions: Index, starts: Index) -> Index:
    return np.unique(np.searchsorted(starts, positions, side="right") - 1) if positions.size else positions


def _having(positions: Index, starts: Index) -> Mask:
    mask = np.zeros(len(starts), bool)
    mask[_rows_of(positions, starts)] = True
    return mask


def _unescaped(quotes: Index, backslashes: Index) -> Index:
    """Without the quotes that follow an odd number of backslashes."""
    if not backslashes.size:
        return quotes
    begins_run = np.diff(backslashes, prepend=-1) != 1
    run_start = backslashes[np.maximum.accumulate(np.where(begins_run, np.arange(len(backslashes)), 0))]
    before = np.searchsorted(backslashes, quotes) - 1  # the last backslash before each quote
    touches = (before >= 0) & (backslashes[before] == quotes - 1)
    odd = (quotes - run_start[before]) % 2 == 1
    kept: Index = quotes[~(touches & odd)]
    return kept


def _broken_text(data: NDArray[np.uint8], starts: Index, ends: Index) -> list[int]:
    """Rows that are no UTF-8. (A row that ends inside a character does not end in `}` and so is never proven.)"""
    if _is_utf8(data):
        return []
    suspects = _rows_of(np.flatnonzero(data >= BEYOND_ASCII), starts).tolist()
    return [row for row in suspects if not _is_utf8(data[starts[row] : ends[row]])]


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    try:
        str(data.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
