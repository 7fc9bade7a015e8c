"""Values proven in bulk: text between two positions of a page becomes a column, and a mask says where that is certain.

page, begin, end -> (column, proven). Where `proven` is false nothing is claimed: `rows` decides. Integers and instants
work on arrays of any shape, so that all such fields of a layout go through in one call. Strings and numbers are
sliced by Arrow.
"""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from spark_jobs.contracts.model import UUID_PATTERN
from spark_jobs.contracts.row_types import YEARS
from spark_jobs.engine.decode.bulk.page import Index, Literals, Mask, Page, Words

Integers = NDArray[np.int64]

MOST_DIGITS = 18  # of an integer: fits in 64 bits whatever the digits are
# What Python's and Arrow's readers turn into the same double: no exponent, no negative integer zero.
_DECIMAL = r"^(?:0|-?[1-9][0-9]{0,14}|-?(?:0|[1-9][0-9]{0,14})\.[0-9]{1,17})$"
_TRUE, _FALSE = Literals([b"true"]), Literals([b"false"])
_EVERY = 0x0101010101010101
_MONTHS = np.arange(f"{YEARS.start}-01", f"{YEARS.stop}-02", dtype="datetime64[M]").astype("datetime64[D]")
_FIRST_DAY = _MONTHS.astype(np.int64)
_DAYS_IN_MONTH = np.diff(_FIRST_DAY)


class _Template:
    """Text of fixed length with separators at fixed places, read as words; the last may overlap the one before."""

    def __init__(self, template: str) -> None:
        places = [*range(0, len(template) - 8, 8), len(template) - 8]
        words = [template[place : place + 8] for place in places]
        self.places = np.array(places)
        self.wanted = np.array([_constant("".join(c if c != " " else "\0" for c in word)) for word in words])
        self.mask = np.array([_constant("".join("\xff" if c != " " else "\0" for c in word)) for word in words])

    def separated(self, page: Page, begin: Index) -> tuple[Words, Mask]:
        """(the words, a `0` for each separator; whether the separators stand where they should)."""
        each = (-1,) + (1,) * begin.ndim  # one word of the template along a new first axis
        word, mask = page.words[begin + self.places.reshape(each)], self.mask.reshape(each)
        good = np.logical_and.reduce(word & mask == self.wanted.reshape(each))
        return (word & ~mask) | (mask & np.uint64(_EVERY * ord("0"))), good


def integers(page: Page, begin: Index, end: Index) -> tuple[Integers, Mask]:
    """`0` or a number without leading zero, up to 18 digits."""
    first = page.data[begin]
    negative = first == ord("-")
    begin = begin + negative
    digits = end - begin
    proven = (digits >= 1) & (digits <= MOST_DIGITS)
    proven &= (page.data[begin] != ord("0")) | ((digits == 1) & ~negative)
    value = np.zeros(begin.shape, np.int64)
    longest = int(digits.max(initial=0, where=proven))
    for low in range(0, longest, 8):
        word = page.words[np.where(proven, end - low - 8, 0)]
        missing = np.clip(8 - (digits - low), 0, 8).astype(np.uint64)
        number, good = _eight_digits(_zeros_first(word, missing))
        value += number * 10**low
        proven &= good
    return np.where(negative, -value, value), proven


def instants(page: Page, begin: Index, end: Index) -> tuple[Integers, Mask]:
    """YYYY-MM-DDTHH:MM:SS.mmmZ of a real day, 1970 to 2261, as microseconds since 1970."""
    proven = end - begin == 24
    begin = np.where(proven, begin, 0)
    text, good = _INSTANT.separated(page, begin)
    (date, time, fraction), digits = _eight_digits(text)  # YYYY0MM0, DD0HH0MM, 0SS0mmm0
    proven &= good & np.logical_and.reduce(digits)
    month = (date // 10_000 - YEARS.start) * 12 + date // 10 % 100 - 1
    day, hour, minute = time // 1_000_000, time // 1000 % 100, time % 100
    second, milli = fraction // 100_000, fraction // 10 % 1000
    proven &= (date // 10 % 100 - 1 < 12) & (date // 10 % 100 >= 1) & (month >= 0) & (month < len(YEARS) * 12)
    month = np.where(proven, month, 0)
    proven &= (day >= 1) & (day <= _DAYS_IN_MONTH[month]) & (hour < 24) & (minute < 60) & (second < 60)
    seconds = (((_FIRST_DAY[month] + day - 1) * 24 + hour) * 60 + minute) * 60 + second
    return (seconds * 1000 + milli) * 1000, proven


def numbers(page: Page, begin: Index, end: Index) -> tuple[NDArray[np.float64], Mask]:
    """Decimal numbers without exponent, as doubles."""
    text = page.strings(begin, end)
    proven = pc.match_substring_regex(text, _DECIMAL)
    if pc.all(proven, min_count=0).as_py() is False:
        text = pc.if_else(proven, text, "0")
    return text.cast(pa.float64()).to_numpy(), _mask(proven)


def booleans(page: Page, begin: Index, end: Index) -> tuple[Mask, Mask]:
    """`true` or `false`."""
    size, at = end - begin, begin[None, :]
    true = (size == 4) & page.hold(_TRUE, at)
    return true, true | ((size == 5) & page.hold(_FALSE, at))


def strings(page: Page, begin: Index, end: Index, rows: Index, schema: dict[str, Any]) -> tuple[pa.Array, Mask]:
    """The contents of quoted strings, escapes resolved, that keep the schema's rules."""
    text, proven = _unescape(page.strings(begin, end), page, rows)
    if "minLength" in schema or "maxLength" in schema:
        length = end - begin if page.ascii and page.escaped is None else pc.utf8_length(text).to_numpy()
        proven = proven & (length >= schema.get("minLength", 0)) & (length <= schema.get("maxLength", 2**31))
    if "enum" in schema:
        proven = proven & _mask(pc.is_in(text, pa.array(schema["enum"], pa.string())))
    if schema.get("pattern") == UUID_PATTERN:  # three times as fast as the regular expression
        proven = proven & _uuids(page, begin, end)
    elif "pattern" in schema:
        proven = proven & _mask(pc.match_substring_regex(text, schema["pattern"]))
    return text, proven


def _unescape(text: pa.StringArray, page: Page, rows: Index) -> tuple[pa.StringArray, Mask]:
    """JSON's own reader resolves the escapes, one string at a time: only in rows that have one."""
    proven = np.ones(len(text), bool)
    if page.escaped is None or not (suspects := np.flatnonzero(page.escaped[rows])).size:
        return text, proven
    raw = text.take(pa.array(suspects)).to_pylist()
    resolved = {row: _resolve(one) for row, one in zip(suspects.tolist(), raw, strict=True) if "\\" in one}
    if not resolved:
        return text, proven
    where = np.zeros(len(text), bool)
    where[[*resolved]] = True
    proven[[row for row, value in resolved.items() if value is None]] = False
    values = pa.array([value or "" for value in resolved.values()], pa.string())
    return pc.replace_with_mask(text, pa.array(where), values), proven


def _resolve(raw: str) -> str | None:
    try:
        value: str = json.loads(f'"{raw}"')
        value.encode("utf-8")
    except ValueError:  # no such escape, or half a character
        return None
    return value


def _uuids(page: Page, begin: Index, end: Index) -> Mask:
    proven = end - begin == 36
    begin = np.where(proven, begin, 0)
    text, good = _UUID.separated(page, begin)
    return np.asarray(proven & good & np.logical_and.reduce(all_between(text, (b"0", b"9"), (b"a", b"f"))), bool)


def _mask(column: pa.Array) -> Mask:
    mask: Mask = column.to_numpy(zero_copy_only=False)
    return mask


def _eight_digits(word: Words) -> tuple[Integers, Mask]:
    """(the number that eight digits spell, whether they are digits)."""
    good = all_between(word, (b"0", b"9"))
    value = word - np.uint64(_EVERY * ord("0"))
    value = value * np.uint64(10) + (value >> np.uint64(8))  # pairs, then fours, then eight
    value = ((value & np.uint64(0x00FF00FF00FF00FF)) * np.uint64(0x640001)) >> np.uint64(16)
    value = ((value & np.uint64(0x0000FFFF0000FFFF)) * np.uint64(0x271000000001)) >> np.uint64(32)
    return value.astype(np.int64), good


def all_between(word: Words, *ranges: tuple[bytes, bytes]) -> Mask:
    """Whether each of the eight bytes lies in one of the ranges (ASCII). High bits cannot carry between bytes."""
    high = np.uint64(_EVERY * 0x80)
    within = np.zeros(word.shape, np.uint64)
    low_bits = word & ~high
    for first, last in ranges:
        at_least = low_bits + np.uint64(_EVERY * (0x80 - ord(first)))
        beyond = low_bits + np.uint64(_EVERY * (0x7F - ord(last)))
        within |= at_least & ~beyond
    all_within: Mask = within & ~word & high == high
    return all_within


def _zeros_first(word: Words, missing: Words) -> Words:
    """The word with its first `missing` bytes (0 to 8) replaced by the digit 0."""
    keep = np.where(missing < 8, np.uint64(2**64 - 1) << np.minimum(missing, 7) * np.uint64(8), 0).astype(np.uint64)
    return (word & keep) | (np.uint64(_EVERY * ord("0")) & ~keep)


def _constant(eight: str) -> np.uint64:
    return np.uint64(int.from_bytes(eight.encode("latin-1"), "little"))


_INSTANT = _Template("    -  -  T  :  :  .   Z")
_UUID = _Template("        -    -    -    -            ")
