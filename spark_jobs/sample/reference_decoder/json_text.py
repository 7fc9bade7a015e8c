"""The text of a record, read for the oracle: one JSON object, or the reason why it is none.

bytes -> json -> dict, numbers as they were written, or NoEvent
"""

import json
from decimal import Decimal
from typing import Any

MOST_NESTED = 100
FAR = 20  # digits, and beyond every integer field
DECIMAL_EXPONENT = 15  # digits of an exponent that Decimal takes; more make no difference to any field


class NoEvent(ValueError):
    """No schema accepts the record: the reason code, and the event type where it is known."""

    def __init__(self, reason: str, event_type: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.event_type = reason, event_type


def parsed(value: bytes) -> dict[str, Any]:
    """The object. Raises NoEvent."""
    if not value:
        raise NoEvent("empty_value")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        raise NoEvent("not_utf8") from None
    if _nested(text) > MOST_NESTED:
        raise NoEvent("too_deep")
    try:
        event = json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_no_number, parse_float=_number, parse_int=_number
        )
    except json.JSONDecodeError:
        raise NoEvent("not_json") from None
    try:
        json.dumps(event, ensure_ascii=False, default=str).encode("utf-8")
    except UnicodeEncodeError:
        raise NoEvent("lone_surrogate") from None
    if not isinstance(event, dict):
        raise NoEvent("not_an_object")
    return event


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise NoEvent("duplicate_key")
    return dict(pairs)


def _no_number(text: str) -> Any:
    raise NoEvent("not_finite")


def _number(text: str) -> int | Decimal:
    """1.0 and 1e2 are integers; nothing is rounded. Numbers beyond every field's range stay as they are."""
    mantissa, _, exponent = text.lower().partition("e")
    digits = exponent.lstrip("+-0")
    if len(digits) > DECIMAL_EXPONENT:
        digits = "9" * DECIMAL_EXPONENT
    number = Decimal(f"{mantissa}e{'-' if exponent.startswith('-') else ''}{digits or 0}")
    if not number:
        return 0
    return int(number) if number.adjusted() < FAR and number == number.to_integral_value() else number


def _nested(text: str) -> int:
    """How deep brackets nest; those in strings do not count. 0 where there are too few to matter."""
    if text.count("{") + text.count("[") <= MOST_NESTED:
        return 0
    depth = deepest = 0
    in_string = is_escaped = False
    for character in text:
        if in_string:
            in_string = is_escaped or character != '"'
            is_escaped = not is_escaped and character == "\\"
        elif character == '"':
            in_string = True
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
    return deepest
