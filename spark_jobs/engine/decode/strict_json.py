"""JSON read strictly: what readers could disagree about is refused by name.

bytes -> parse -> dict, or Rejected. Valid UTF-8, no duplicate keys at any depth, no NaN, whole characters,
bounded depth.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from itertools import accumulate
from typing import Any

from spark_jobs.engine.decode.reasons import Reason, Rejected, shown

MAX_DEPTH = 100
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)


class Written(float):
    """A number with a fraction, an exponent or more digits than an int64, as it was written: `1.0` is an integer."""

    text: str

    def __new__(cls, text: str) -> "Written":
        number = super().__new__(cls, text)
        number.text = text
        return number

    def is_integer(self) -> bool:
        """Not the float's question: whether it was *not* turned into an int by `integral`."""
        return False

    def integral(self) -> "int | Written":
        """The exact integer, where it is one: 9007199254740993.0 loses nothing. Beyond 64 bits: just that, 2**64."""
        if abs(self) > 2**64:
            return 2**64 if self > 0 else -(2**64)
        try:
            exact = Decimal(self.text)
            return int(exact) if exact == exact.to_integral_value() else self
        except InvalidOperation:  # an exponent beyond any decimal's: nothing at all, or no integer
            return self if self.text.lower().partition("e")[0].strip("-0.") else 0


def parse(value: bytes) -> dict[str, Any]:
    """The JSON object, strictly. Raises Rejected."""
    if not value:
        raise Rejected(Reason.EMPTY_VALUE, "no bytes")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Rejected(Reason.NOT_UTF8, f"byte {error.start}: {shown(value[error.start : error.start + 8])}") from None
    if _too_deep(text):
        raise Rejected(Reason.TOO_DEEP, f"nested deeper than {MAX_DEPTH}")
    try:
        event = json.loads(
            text, object_pairs_hook=_object, parse_constant=no_constant, parse_float=Written, parse_int=_int
        )
    except json.JSONDecodeError as error:
        raise Rejected(Reason.NOT_JSON, f"{error.msg} at character {error.pos}: {shown(text)}") from None
    if "\\u" in text:
        _check_characters(event)
    if not isinstance(event, dict):
        raise Rejected(Reason.NOT_AN_OBJECT, shown(text))
    return event


def _too_deep(text: str) -> bool:
    """Whether brackets outside strings nest deeper than MAX_DEPTH."""
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return False
    brackets = re.sub(r"[^][{}]", "", _STRING.sub("", text))
    return max(accumulate(1 if bracket in "{[" else -1 for bracket in brackets), default=0) > MAX_DEPTH


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Rejected(Reason.DUPLICATE_KEY, f"key {shown(twice)} occurs more than once", twice[:64])
    return fields


def no_constant(text: str) -> None:
    """Refuses what Python's reader would take: NaN, Infinity, -Infinity."""
    raise Rejected(Reason.NOT_FINITE, f"{text} is no JSON")


def _int(text: str) -> int | Written:
    return int(text) if len(text) <= 20 else Written(text)


def _check_characters(event: Any) -> None:
    try:
        json.dumps(event, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise Rejected(Reason.LONE_SURROGATE, f"half a character: {shown(error.object[error.start])}") from None
