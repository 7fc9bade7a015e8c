"""Schema files and records for tests that need a contract which the project has not."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.model import INSTANT_PATTERN, Contract

RECORDED_AT = datetime(2025, 3, 1, tzinfo=UTC)
SCHEMA: dict[str, Any] = {
    "description": "A heart has beaten.",
    "type": "object",
    "properties": {
        "event_id": {"type": "string"},
        "event_type": {"const": "heart_beaten"},
        "occurred_at": {"type": "string", "format": "date-time", "pattern": INSTANT_PATTERN},
        "beats": {"type": "integer"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["event_type", "occurred_at", "beats"],
    "x-tidemark": {"key": "beats", "owner": "health"},
    "examples": [{"event_type": "heart_beaten", "occurred_at": "2025-03-01T12:00:00.000Z", "beats": 60}],
}


def write(
    folder: Path,
    version: int = 1,
    name: str = "heart_beaten",
    fields: dict[str, Any] | None = None,
    drop: tuple[str, ...] | list[str] = (),
    **change: Any,
) -> None:
    """A schema file: SCHEMA with other or fewer fields, and other keywords."""
    properties = {**SCHEMA["properties"], "event_type": {"const": name}, **(fields or {})}
    properties = {key: value for key, value in properties.items() if key not in drop}
    text = json.dumps({**SCHEMA, "properties": properties, **change})
    (folder / f"{name}.v{version}.json").write_text(text)


def records(topic: str, events: list[Any], version: int | None = None) -> pa.Table:
    """row_types.RECORD of events (objects, or bytes as they are), with the version as a header."""
    headers = None if version is None else [{"key": "schema_version", "value": b"%d" % version}]
    rows = [
        {"lsn": 1, "topic": topic, "partition": 0, "offset": n, "timestamp": RECORDED_AT, "key": None}
        | {"value": event if isinstance(event, bytes | None) else json.dumps(event).encode(), "headers": headers}
        for n, event in enumerate(events)
    ]
    return pa.Table.from_pylist(rows, schema=row_types.RECORD)


def broken_examples(contract: Contract) -> list[tuple[dict[str, Any], str, str]]:
    """(value, reason, field): the first good example of the contract, changed so that it breaks one rule."""
    return [
        (
            {k: v for k, v in {**contract.examples[0], **bad.get("change", {})}.items() if k != bad.get("without")},
            bad["reason"],
            bad["field"],
        )
        for bad in contract.examples_bad
    ]
