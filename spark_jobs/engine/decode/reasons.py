"""Why a record is no fact: the reason codes, in one place, and how a rejected value is shown.

The codes are data: they stand in `master.quarantine`, in control rows and on dashboards, so they never change meaning.
"""

import json
from enum import StrEnum
from typing import Any

SHOWN = 160  # characters of a refused value that a detail repeats at most


class Reason(StrEnum):
    """Reason codes of rejects. Tests run from the outside in: record, JSON, envelope, then the schema's fields in
    the order in which the schema lists them; the first that fails gives the code."""

    UNKNOWN_TOPIC = "unknown_topic"  # no schema names the topic
    NULL_VALUE = "null_value"  # a tombstone on a topic that is not compacted
    BAD_KEY = "bad_key"  # a tombstone whose Kafka key is no valid value of the schema's key field
    EMPTY_VALUE = "empty_value"  # zero bytes
    NOT_UTF8 = "not_utf8"  # the bytes are no UTF-8 text
    TOO_DEEP = "too_deep"  # nested deeper than strict_json.MAX_DEPTH
    NOT_JSON = "not_json"  # no JSON text: truncated, trailing garbage, a byte-order mark, raw control characters
    NOT_FINITE = "not_finite"  # NaN or Infinity, which some writers emit and JSON does not know
    DUPLICATE_KEY = "duplicate_key"  # an object names a key twice: readers would disagree about its value
    LONE_SURROGATE = "lone_surrogate"  # an escape such as \ud800 that is no character
    NOT_AN_OBJECT = "not_an_object"  # JSON, but an array, a string, a number, true, false or null
    UNKNOWN_EVENT_TYPE = "unknown_event_type"  # event_type names no schema
    WRONG_TOPIC = "wrong_topic"  # event_type is known, but belongs to another topic
    UNKNOWN_VERSION = "unknown_version"  # the header schema_version names no version of the event type
    MISSING_FIELD = "missing_field"  # a required field is absent
    NULL_FIELD = "null_field"  # null where the schema wants a value
    WRONG_TYPE = "wrong_type"  # another JSON type than the schema's; 1.0 and 1e2 are integers, 1.5 and "1" are not
    NOT_IN_ENUM = "not_in_enum"  # not one of the listed values
    OUT_OF_RANGE = "out_of_range"  # below the minimum or above the maximum
    BAD_LENGTH = "bad_length"  # shorter or longer than allowed, in code points
    BAD_PATTERN = "bad_pattern"  # a string that does not match its pattern
    BAD_TIMESTAMP = "bad_timestamp"  # not YYYY-MM-DDTHH:MM:SS.mmmZ
    IMPOSSIBLE_TIME = "impossible_time"  # well written, but no such moment: 29 February 2025, 25 o'clock, second 60
    TIME_OUT_OF_RANGE = "time_out_of_range"  # before 1970 or after 2261
    NUMBER_TOO_LARGE = "number_too_large"  # beyond a 64-bit integer, or beyond the largest double

    RETRACTED = "retracted"  # it was a fact, until somebody took it back
    ERASED = "erased"  # it was about somebody who is forgotten


UNTYPED = frozenset({
    Reason.UNKNOWN_TOPIC, Reason.NULL_VALUE, Reason.EMPTY_VALUE, Reason.NOT_UTF8, Reason.TOO_DEEP, Reason.NOT_JSON,
    Reason.NOT_FINITE, Reason.DUPLICATE_KEY, Reason.LONE_SURROGATE, Reason.NOT_AN_OBJECT, Reason.UNKNOWN_EVENT_TYPE,
})  # fmt: skip
"""Found before it is known which event type the record claims to be."""


class Rejected(Exception):
    """The verdict on one record; `detail` is safe to print and short."""

    def __init__(self, reason: Reason, detail: str, field: str | None = None) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason, self.field, self.detail = reason, field, detail
        self.event_type: str | None = None
        self.schema_version: int | None = None

    def about(self, event_type: str, schema_version: int | None = None) -> "Rejected":
        """The same verdict, once it is known which event type the record claims to be."""
        self.event_type, self.schema_version = event_type, schema_version
        return self


def shown(value: Any) -> str:
    """A value for a message: ASCII, escaped (no terminal codes, no line breaks), at most `SHOWN` characters."""
    if isinstance(value, bytes):
        value = value[:SHOWN].decode("utf-8", "replace")
    if isinstance(value, str):
        value = value[:SHOWN]
    text = json.dumps(value, default=str).replace("\x7f", "\\u007f")
    return text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
