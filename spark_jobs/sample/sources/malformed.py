"""Records that must be rejected: good ones, broken in one way each.

a good value + a way to break it -> bytes that no schema accepts, with the reason code that decode must give

The ways: damage to the bytes (DAMAGE) or to the envelope (FLAT), and the contract's own `examples_bad`, applied to the
event at hand.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.contracts.model import Contract

Break = Callable[[bytes], bytes | None]


@dataclass(frozen=True)
class Way:
    reason: str
    apply: Break


DAMAGE = (
    Way("null_value", lambda value: None),
    Way("empty_value", lambda value: b""),
    Way("not_utf8", lambda value: value[:-1] + b',"note":"\xff\xfe"}'),
    Way("not_utf8", lambda value: value.decode().encode("utf-16")),
    Way("not_utf8", lambda value: value[:-1] + b',"note":"\xed\xa0\x80"}'),  # a surrogate, encoded
    Way("not_json", lambda value: value[: len(value) // 2]),
    Way("not_json", lambda value: value + b" and more"),
    Way("not_json", lambda value: b"\xef\xbb\xbf" + value),  # a byte-order mark
    Way("not_json", lambda value: value[:-1] + b',"note":"\x00"}'),
    Way("not_json", lambda value: value.replace(b'"', b"'")),
    Way("not_finite", lambda value: value[:-1] + b',"note":NaN}'),
    Way("lone_surrogate", lambda value: value[:-1] + b',"note":"\\ud800"}'),
    Way("not_an_object", lambda value: b"[" + value + b"]"),
    Way("not_an_object", lambda value: json.dumps(value.decode()).encode()),
    Way("too_deep", lambda value: value[:-1] + b',"note":' + b"[" * 10_000 + b"]" * 10_000 + b"}"),
)

FLAT = (
    Way("duplicate_key", lambda value: value[:-1] + b',"event_id":"twice"}'),
    Way("unknown_event_type", lambda value: _changed(value, {"event_type": "order_misplaced"})),
    Way("unknown_event_type", lambda value: _changed(value, {"event_type": "'; DROP TABLE facts; --"})),
    Way("time_out_of_range", lambda value: _changed(value, {"occurred_at": "0000-01-01T00:00:00.000Z"})),
    Way("time_out_of_range", lambda value: _changed(value, {"occurred_at": "9999-12-31T23:59:59.999Z"})),
    Way("impossible_time", lambda value: _changed(value, {"occurred_at": "2016-12-31T23:59:60.000Z"})),
    Way("bad_timestamp", lambda value: _changed(value, {"occurred_at": "2025-03-01T12:00:00.000"})),
    Way("wrong_type", lambda value: _changed(value, {"occurred_at": 1_740_830_400_000})),
)
"""For events whose own fields stand at the top."""


def ways(contract: Contract) -> list[Way]:
    """Every way to break an event of this type."""
    damage = [way for way in DAMAGE if way.reason != "null_value" or not contract.compacted]
    flat = () if contract.nested else FLAT
    return [*damage, *flat, *(_as_example(bad) for bad in contract.examples_bad)]


def _as_example(bad: Mapping[str, Any]) -> Way:
    return Way(bad["reason"], lambda value: _changed(value, bad.get("change", {}), bad.get("without")))


def _changed(value: bytes, change: Mapping[str, Any], without: str | None = None) -> bytes:
    event = {name: field for name, field in {**json.loads(value), **change}.items() if name != without}
    return json.dumps(event, ensure_ascii=False).encode()
