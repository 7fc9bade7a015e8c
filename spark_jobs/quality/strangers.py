"""What a record is, said a second time: for the oracle, where no producer wrote down what the record was meant to be.

record -> json, jsonschema, datetime -> the event's fields, or None: no schema accepts it

Shares the schema files with the pipeline, and no code: slow, plain, one record at a time.
"""

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from spark_jobs.contracts import FOLDER

MOST_NESTED = 100
FIRST_YEAR, LAST_YEAR = 1970, 2261
NOWHERE = object()


class NoEvent(ValueError):
    """No schema accepts the record."""


@cache
def schemas() -> dict[str, dict[int, dict[str, Any]]]:
    """Event type -> version -> schema."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    for path in FOLDER.glob("*.v*.json"):
        event_type, version, _ = path.name.rsplit(".", 2)
        found.setdefault(event_type, {})[int(version[1:])] = json.loads(path.read_text("utf-8"))
    return found


@cache
def topics() -> dict[str, list[str]]:
    """Topic -> its event types."""
    found: dict[str, list[str]] = {}
    for event_type, versions in sorted(schemas().items()):
        found.setdefault(versions[max(versions)]["x-tidemark"]["topic"], []).append(event_type)
    return found


def properties(event_type: str) -> dict[str, dict[str, Any]]:
    """The fields of the newest version, by name."""
    versions = schemas()[event_type]
    fields: dict[str, dict[str, Any]] = versions[max(versions)]["properties"]
    return fields


def read(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The event of one record (topic, key, value, timestamp; headers where known): its fields, instants as datetime.

    `deleted` is always there; a tombstone has the key's field alone. None: the record is no event.
    """
    try:
        event_type = topics()[record["topic"]][0]
        if record["value"] is None:
            return _tombstone(record, event_type)
        event = _parsed(record["value"])
        return _event(event, record["topic"], _version(record.get("headers")))
    except (NoEvent, LookupError, ValueError, RecursionError, OverflowError):
        return None


def _version(headers: list[dict[str, Any]] | None) -> int | None:
    named = [header["value"] for header in headers or () if header["key"] == "schema_version"]
    if not named:
        return None
    if not re.fullmatch(rb"[0-9]{1,9}", named[-1] or b""):
        raise NoEvent("the version is no number")
    return int(named[-1])


def _tombstone(record: Mapping[str, Any], event_type: str) -> dict[str, Any]:
    versions = schemas()[event_type]
    about = versions[max(versions)]["x-tidemark"]
    if not about["compacted"]:
        raise NoEvent("no value")
    field = properties(event_type)[about["key"]]
    if is_nested(event_type):
        value = _parsed(record["key"] or b"")[about["key"]]
    else:
        key = (record["key"] or b"").decode("utf-8")
        value = key if field["type"] == "string" else json.loads(key)
    if not Draft202012Validator(_exact(field)).is_valid(value):
        raise NoEvent("no such key")
    return {"event_type": event_type, "occurred_at": record["timestamp"], "deleted": True, about["key"]: value}


def _parsed(value: bytes) -> dict[str, Any]:
    text = value.decode("utf-8")
    event = json.loads(
        text, object_pairs_hook=_distinct, parse_constant=_no_number, parse_float=_number, parse_int=_number
    )
    json.dumps(event, ensure_ascii=False, default=str).encode("utf-8")  # half a character fails here
    if not isinstance(event, dict) or _nested(event) > MOST_NESTED:
        raise NoEvent("no flat object")
    return event


def _event(event: dict[str, Any], topic: str, version: int | None) -> dict[str, Any]:
    nested = [one for one in topics()[topic] if is_nested(one)]
    event_type = nested[0] if nested else event["event_type"]
    if not isinstance(event_type, str) or event_type not in topics()[topic]:
        raise NoEvent("another topic's event")
    versions = schemas()[event_type]
    schema = versions[max(versions) if version is None else version]
    if nested:
        event = _unpacked(event, event_type, schema["properties"])
    if not _validator(event_type, max(versions) if version is None else version).is_valid(event):
        raise NoEvent("not what the schema wants")
    known = {name: _value(event[name], field) for name, field in schema["properties"].items() if name in event}
    return {"deleted": False, **{name: value for name, value in known.items() if value is not None}}


def is_nested(event_type: str) -> bool:
    """Whether the schema says where the fields stand in the record."""
    return any("x-from" in field for field in properties(event_type).values())


def _unpacked(event: dict[str, Any], event_type: str, fields: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The fields of a nested record by name; those that are not there are left out."""
    found = {}
    for name, field in fields.items():
        place = field.get("x-from", name)
        value: Any
        if isinstance(place, list):
            parts = [_first(event, one) for one in place]
            value = NOWHERE if None in parts or NOWHERE in parts else "/".join(str(part) for part in parts)
        elif "=" in place:
            path, text = place.split("=")
            value = _first(event, path) == text
        else:
            value = _first(event, place)
        if "format" in field and type(value) is int:
            value = datetime.fromtimestamp(value // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{value % 1000:03}Z"
        found[name] = value
    there = {name: value for name, value in found.items() if value is not NOWHERE}
    return {**there, "event_type": event_type}


def _first(event: dict[str, Any], places: str) -> Any:
    """What stands at the first place that has something; else null if one has that, else NOWHERE."""
    values = [_at(event, place.split(".")) for place in places.split("|")]
    something = [value for value in values if value is not None and value is not NOWHERE]
    return something[0] if something else None if None in values else NOWHERE


def _at(value: Any, steps: list[str]) -> Any:
    if not steps or value is None:
        return value
    if not isinstance(value, dict):
        raise NoEvent(f"{steps[0]} in something that is no object")
    return _at(value[steps[0]], steps[1:]) if steps[0] in value else NOWHERE


def _value(value: Any, field: dict[str, Any]) -> Any:
    if value is None or "format" not in field:
        number = float(value) if isinstance(value, Decimal) else value
        if isinstance(number, float) and not math.isfinite(number):
            raise NoEvent("beyond every double")
        return number
    at = datetime.strptime(value, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise NoEvent("no time that is kept")
    return at


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise NoEvent("a key twice")
    return dict(pairs)


def _no_number(text: str) -> Any:
    raise NoEvent(text)


def _number(text: str) -> int | Decimal:
    """1.0 and 1e2 are integers; nothing is rounded. Numbers beyond every field's range stay as they are."""
    number = Decimal(text)
    return int(number) if number.adjusted() < 20 and number == number.to_integral_value() else number


def _nested(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_nested, inner), default=0) if isinstance(value, dict | list) else 0


@cache
def _validator(event_type: str, version: int) -> Draft202012Validator:
    schema = schemas()[event_type][version]
    fields = {name: _exact(field) for name, field in schema["properties"].items()}
    return Draft202012Validator({**schema, "properties": fields})


def _exact(field: dict[str, Any]) -> dict[str, Any]:
    """`$` means the end: Python's lets a line break follow."""
    return {**field, "pattern": field["pattern"][:-1] + r"\Z"} if "pattern" in field else field
