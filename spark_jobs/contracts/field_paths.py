"""Where the fields of a nested record stand: the keyword `x-from` of a schema, as for Debezium's envelope.

parsed JSON + the places of the fields -> lifted -> a flat event, which the schema's rules are then held against.

| `x-from` | the field is |
|---|---|
| `"source.lsn"` | what stands there; of an instant, an integer is milliseconds since 1970 |
| `"after.id\\|before.id"` | the first of them that is there and not null |
| `"op=d"` | whether it is this text |
| `["source.lsn", "op"]` | their texts, with `/` between them; nothing where one is lacking |

A field without `x-from` stands at the top, by its own name.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from spark_jobs.expressions.epoch import at_micros

KEYWORD = "x-from"
ABSENT = object()


class Misplaced(ValueError):
    """A field has no value at its place that could be judged: `field`, and whether it is a time beyond the calendar."""

    def __init__(self, field: str, reason: str, *, is_time: bool = False):
        super().__init__(reason)
        self.field, self.is_time = field, is_time


_PATH = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*"
_PLACE = re.compile(rf"{_PATH}(?:\|{_PATH})*(?:=[A-Za-z0-9_.-]+)?")


def check(name: str, rules: Mapping[str, Any]) -> None:
    """Raises ValueError where `x-from` is written in no known way."""
    place = rules.get(KEYWORD, name)
    for one in place if isinstance(place, list) else [place]:
        if not isinstance(one, str) or not _PLACE.fullmatch(one):
            raise ValueError(f'field {name}: {KEYWORD} is "a.b", "a.b|c.d", "a=text" or a list of such, not {one!r}')
    if rules.get("type") == "boolean" and not isinstance(place, str):
        raise ValueError(f"field {name}: a boolean stands at one place")


def lifted(event: Mapping[str, Any], properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The flat event; a field that is not there is left out. Raises Misplaced.

    `event_type` is what the schema says, for such a record does not tell.
    """
    flat = {}
    for name, rules in properties.items():
        try:
            value = rules["const"] if "const" in rules else _value(event, rules.get(KEYWORD, name))
            if "format" in rules and isinstance(value, int) and not isinstance(value, bool):
                value = _instant(value)
        except TypeError as error:
            raise Misplaced(name, str(error)) from None
        except OverflowError:
            raise Misplaced(name, f"{value} milliseconds since 1970", is_time=True) from None
        if value is not ABSENT:
            flat[name] = value
    return flat


def _value(event: Mapping[str, Any], place: str | Sequence[str]) -> Any:
    if not isinstance(place, str):
        found = [_value(event, one) for one in place]
        return ABSENT if any(one is ABSENT or one is None for one in found) else "/".join(map(str, found))
    paths, wanted, text = place.partition("=")
    values = [_at(event, path.split(".")) for path in paths.split("|")]
    if wanted:
        return values[0] == text
    there = [value for value in values if value is not ABSENT]
    return next((value for value in there if value is not None), there[0] if there else ABSENT)


def _at(event: Any, path: Sequence[str]) -> Any:
    """What lies within null is null. Raises TypeError where there is no object to look into."""
    for place, name in enumerate(path):
        if event is None:
            return None
        if not isinstance(event, Mapping):
            raise TypeError(f"{'.'.join(path[:place])} is no object")
        if name not in event:
            return ABSENT
        event = event[name]
    return event


def _instant(milliseconds: int) -> str:
    at = at_micros(milliseconds * 1000)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
