"""What a record is, said a second time: for the oracle, where no producer wrote down what the record was meant to be.

record -> json_text, jsonschema, datetime -> the event's fields, or NoEvent: no schema accepts it, and why

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

from spark_jobs.sample.reference_decoder.field_paths import unpacked
from spark_jobs.sample.reference_decoder.json_text import FAR, NoEvent, parsed
from spark_jobs.settings import ROOT, settings

FIRST_YEAR, LAST_YEAR = 1970, 2261
BEYOND_64_BITS = 2**63
BROKEN = {
    "type": "wrong_type",
    "enum": "not_in_enum",
    "minimum": "out_of_range",
    "maximum": "out_of_range",
    "minLength": "bad_length",
    "maxLength": "bad_length",
    "pattern": "bad_pattern",
}
"""Keyword of a schema -> the reason code of a value that breaks it."""


InForce = frozenset[str] | None
"""Names of the schemas by which a record is read, as `order_placed.v1`; None: all that there are."""


@cache
def schemas(of: InForce = None) -> dict[str, dict[int, dict[str, Any]]]:
    """Event type -> version -> schema."""
    found: dict[str, dict[int, dict[str, Any]]] = {}
    folders = settings().schemas_folder, ROOT / "spark_jobs/contracts/events"
    for path in (file for folder in folders for file in folder.glob("*.v*.json")):
        event_type, version, _ = path.name.rsplit(".", 2)
        if of is None or path.stem in of:
            found.setdefault(event_type, {})[int(version[1:])] = json.loads(path.read_text("utf-8"))
    return found


@cache
def topics(of: InForce = None) -> dict[str, list[str]]:
    """Topic -> its event types; those that the platform notes itself have none."""
    found: dict[str, list[str]] = {}
    for event_type, versions in sorted(schemas(of).items()):
        about = versions[max(versions)]["x-tidemark"]
        if not about.get("noted"):
            found.setdefault(about["topic"], []).append(event_type)
    return found


def properties(event_type: str) -> dict[str, dict[str, Any]]:
    """The fields of the newest version, by name."""
    versions = schemas()[event_type]
    fields: dict[str, dict[str, Any]] = versions[max(versions)]["properties"]
    return fields


def judged(record: Mapping[str, Any], of: InForce = None) -> dict[str, Any]:
    """The event of one record (topic, key, value, timestamp; headers where known): its fields, instants as datetime.

    `deleted` is always there; a tombstone has the key's field alone. Raises NoEvent.
    """
    topic, value = record["topic"], record["value"]
    if topic not in topics(of):
        raise NoEvent("unknown_topic")
    if value is None:
        return _tombstone(record, topics(of)[topic][0])
    event = parsed(value)
    event_type = _claimed(event, topic, of)
    try:
        return _event(event, event_type, _version(event_type, record.get("headers"), of))
    except NoEvent as refused:
        raise NoEvent(refused.reason, event_type) from None


def _claimed(event: dict[str, Any], topic: str, of: InForce) -> str:
    """The event type; nested records do not say it."""
    if is_nested(topics(of)[topic][0]):
        return topics(of)[topic][0]
    if "event_type" not in event:
        raise NoEvent("missing_field")
    event_type = event["event_type"]
    if not isinstance(event_type, str):
        raise NoEvent("null_field" if event_type is None else "wrong_type")
    if event_type not in schemas(of):
        raise NoEvent("unknown_event_type")
    if event_type not in topics(of)[topic]:
        raise NoEvent("wrong_topic", event_type)
    return event_type


def _version(event_type: str, headers: list[dict[str, Any]] | None, of: InForce) -> int:
    named = [header["value"] for header in headers or () if header["key"] == "schema_version"]
    if not named:
        return max(schemas(of)[event_type])
    if not re.fullmatch(rb"[0-9]{1,9}", named[-1] or b"") or int(named[-1]) not in schemas(of)[event_type]:
        raise NoEvent("unknown_version")
    return int(named[-1])


def _tombstone(record: Mapping[str, Any], event_type: str) -> dict[str, Any]:
    versions = schemas()[event_type]
    about = versions[max(versions)]["x-tidemark"]
    if not about["compacted"]:
        raise NoEvent("null_value")
    field = properties(event_type)[about["key"]]
    try:
        if is_nested(event_type):
            value = parsed(record["key"] or b"").get(about["key"])
        else:
            key = (record["key"] or b"").decode("utf-8")
            value = key if field["type"] == "string" else json.loads(key)
    except ValueError:
        raise NoEvent("bad_key", event_type) from None
    if not Draft202012Validator(_exact(field)).is_valid(value):
        raise NoEvent("bad_key", event_type)
    if not FIRST_YEAR <= record["timestamp"].year <= LAST_YEAR:
        raise NoEvent("time_out_of_range", event_type)
    return {"event_type": event_type, "occurred_at": record["timestamp"], "deleted": True, about["key"]: value}


def _event(event: dict[str, Any], event_type: str, version: int) -> dict[str, Any]:
    fields = schemas()[event_type][version]["properties"]
    if is_nested(event_type):
        event = unpacked(event, event_type, fields)
    event = {name: _whole(value, fields.get(name, {})) for name, value in event.items()}
    for name, rules in _validators(event_type, version).items():
        if name not in event:
            if name in schemas()[event_type][version]["required"]:
                raise NoEvent("missing_field")
        elif error := next(rules.iter_errors(event[name]), None):
            raise NoEvent(_broken(str(error.validator), event[name], fields[name]))
    read_first = ["occurred_at", *fields]
    known = {name: _value(event[name], fields[name]) for name in dict.fromkeys(read_first) if name in event}
    return {"deleted": False, **{name: value for name, value in known.items() if value is not None}}


def is_nested(event_type: str) -> bool:
    """Whether the schema says where the fields stand in the record."""
    return any("x-from" in field for field in properties(event_type).values())


def _whole(value: Any, field: dict[str, Any]) -> Any:
    """The value of an integer field; a number far beyond 64 bits becomes one integer beyond them, fraction or not."""
    is_beyond = isinstance(value, Decimal) and value.adjusted() >= FAR and "integer" in field.get("type", ())
    return (-1 if value < 0 else 1) * 10**FAR if is_beyond else value


def _broken(keyword: str, value: Any, field: dict[str, Any]) -> str:
    if keyword == "type" and value is None:
        return "null_field"
    return "bad_timestamp" if keyword == "pattern" and "format" in field else BROKEN[keyword]


def _value(value: Any, field: dict[str, Any]) -> Any:
    if value is None:
        return None
    if "format" in field:
        return _instant(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        if "integer" in field["type"]:
            if not -BEYOND_64_BITS <= value < BEYOND_64_BITS:
                raise NoEvent("number_too_large")
            return int(value)
        if not math.isfinite(_double(value)):
            raise NoEvent("number_too_large")
        return _double(value)
    return value


def _double(value: int | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _instant(text: str) -> datetime:
    if not FIRST_YEAR <= int(text[:4]) <= LAST_YEAR:
        raise NoEvent("time_out_of_range")
    try:
        return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    except ValueError:
        raise NoEvent("impossible_time") from None


@cache
def _validators(event_type: str, version: int) -> dict[str, Draft202012Validator]:
    """By field, in the schema's order."""
    fields = schemas()[event_type][version]["properties"]
    return {name: Draft202012Validator(_exact(field)) for name, field in fields.items()}


def _exact(field: dict[str, Any]) -> dict[str, Any]:
    """`$` means the end: Python's lets a line break follow."""
    return {**field, "pattern": field["pattern"][:-1] + r"\Z"} if "pattern" in field else field
