"""Find the fields of a nested record: the keyword `x-from` of a schema names their paths, as for Debezium's envelope.

parsed JSON + the field paths -> lifted -> a flat event, to which the schema's rules apply.

| `x-from` | the field is |
|---|---|
| `"source.lsn"` | what stands there; for an instant, an integer is milliseconds since 1970 |
| `"after.id\\|before.id"` | the first of them that is there and not null |
| `"op=d"` | whether it is this text |
| `["source.lsn", "op"]` | their texts, with `/` between them; nothing where one is lacking |

A field without `x-from` stands at the top, by its own name.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from spark_jobs.expressions.epoch import at_micros

KEYWORD = "x-from"
ABSENT = object()

Path = tuple[str, ...]
Place = str | Sequence[str]


class Misplaced(ValueError):
    """A field's path leads to no value that could be judged: `field`, and whether it is a time beyond the calendar."""

    def __init__(self, field: str, reason: str, *, is_time: bool = False):
        super().__init__(reason)
        self.field, self.is_time = field, is_time


_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_PATH = rf"{_NAME}(?:\.{_NAME}){{0,31}}"
_PLACE = re.compile(rf"{_PATH}(?:\|{_PATH})*(?:=[A-Za-z0-9_.-]+)?")


def check(name: str, rules: Mapping[str, Any]) -> None:
    """Raise ValueError if `x-from` has no known form."""
    place, form = rules.get(KEYWORD, name), _PLACE if KEYWORD in rules else re.compile(_NAME)
    for part in place if place and isinstance(place, list) else [place]:
        if not isinstance(part, str) or not form.fullmatch(part):
            raise ValueError(f'field {name}: {KEYWORD} is "a.b", "a.b|c.d", "a=text" or a list of such, not {part!r}')
    if rules.get("type") == "boolean" and not isinstance(place, str):
        raise ValueError(f"field {name}: a boolean stands at one place")


def check_apart(properties: Mapping[str, Mapping[str, Any]]) -> None:
    """Raises ValueError where a field stands inside another one, which is then no object."""
    fields = {path: name for name, rules in properties.items() for path in paths(rules.get(KEYWORD, name))}
    for path, name in fields.items():
        for outer in (path[:size] for size in range(1, len(path)) if path[:size] in fields):
            raise ValueError(f"field {name} stands inside the field {fields[outer]}")


def lifted(event: Mapping[str, Any], properties: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The flat event; a field that is not there is left out. Raises Misplaced.

    `event_type` comes from the schema, as such a record does not say it.
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


def paths(place: Place) -> list[Path]:
    """Every path that a place names."""
    places = [place] if isinstance(place, str) else place
    return [tuple(path.split(".")) for part in places for path in part.partition("=")[0].split("|")]


def is_text(place: Place) -> bool:
    """Whether the field is made of the text of what stands there."""
    return not isinstance(place, str) or "=" in place


def of_many(values: Mapping[Path, list[Any]], place: Place) -> list[Any]:
    """What a field is in each of many records, of which this is what stands at the paths."""
    if not isinstance(place, str):
        return [*map(_joined, zip(*(of_many(values, part) for part in place), strict=True))]
    columns = [values[path] for path in paths(place)]
    _, wanted, text = place.partition("=")
    if wanted:
        return [value == text for value in columns[0]]
    return columns[0] if len(columns) == 1 else [*map(_first, zip(*columns, strict=True))]


def _value(event: Mapping[str, Any], place: Place) -> Any:
    if not isinstance(place, str):
        return _joined([_value(event, part) for part in place])
    values = [_at(event, path) for path in paths(place)]
    _, wanted, text = place.partition("=")
    return values[0] == text if wanted else _first(values)


def _first(values: Iterable[Any]) -> Any:
    """The first that is there and not null; else null if one is that."""
    nothing: Any = ABSENT
    for value in values:
        if value is None:
            nothing = None
        elif value is not ABSENT:
            return value
    return nothing


def _joined(parts: Sequence[Any]) -> Any:
    return ABSENT if None in parts or ABSENT in parts else "/".join(map(str, parts))


def _at(event: Any, path: Path) -> Any:
    """The value at a path; what lies within null is null. Raises TypeError where there is no object to look into."""
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
