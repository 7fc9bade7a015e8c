"""The fields of a nested record, found for the oracle where the schema's `x-from` says.

nested JSON object -> flat event, or NoEvent
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from spark_jobs.sample.reference_decoder.json_text import NoEvent

NOWHERE = object()


def unpacked(event: dict[str, Any], event_type: str, fields: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
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
            value = _written(value)
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
        raise NoEvent("wrong_type")
    return _at(value[steps[0]], steps[1:]) if steps[0] in value else NOWHERE


def _written(milliseconds: int) -> str:
    try:
        at = datetime.fromtimestamp(milliseconds // 1000, UTC)
    except (ValueError, OverflowError, OSError):
        raise NoEvent("time_out_of_range") from None
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{milliseconds % 1000:03}Z"
