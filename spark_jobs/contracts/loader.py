"""Load the schema files: the event types, and what their records must look like.

<event_type>.v<N>.json of the project's folder and of the platform's -> Contracts -> decode, views, suites.

A file is JSON Schema 2020-12 for one flat object plus `x-tidemark` (topic, key, compacted, or `noted`; owner,
examples_bad). Which keywords a field may use is a positive list (`KEYWORDS`): each has a vectorised check in `decode`.
See them all: `python -m spark_jobs.contracts`.
"""

import json
import re
from functools import cache
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from jsonschema import Draft202012Validator, SchemaError

from spark_jobs.contracts import compatibility, erasures, field_paths, row_types
from spark_jobs.contracts.model import (
    DELETED,
    ENVELOPE,
    ENVELOPE_NEEDED,
    INSTANT_PATTERN,
    Contract,
    ContractError,
    Contracts,
    Field,
    types_of,
)
from spark_jobs.settings import settings

KEYWORDS = {
    "type", "const", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "format",
    "title", "description", "examples", field_paths.KEYWORD, erasures.KEYWORD,
}  # fmt: skip
OBJECT_KEYWORDS = {"$schema", "$id", "$comment", "title", "description", "type", "properties", "required", "examples"}
TIDEMARK_KEYWORDS = {"topic", "key", "compacted", "noted", "owner", "examples_bad"}
ARROW = {"string": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}

PLATFORM_EVENTS = Path(__file__).parent / "events"
"""The event types that the platform itself makes; every project has them."""

_FILE = re.compile(r"([a-z][a-z0-9_]*)\.v([1-9][0-9]*)\.json")
# Patterns mean the same to Python, RE2 and ECMA-262 when they are anchored, ASCII, and made of literals and [classes].
_PATTERN = re.compile(
    r"\^(?:(?:\[[^\[\]\\]+\]|[A-Za-z0-9_:/@,;=-]|\\[.+*?()|$^-])(?:[?*+]|\{[0-9]{1,3}(?:,[0-9]{0,3})?\})?)*\$"
)


@cache
def project_contracts() -> Contracts:
    """The project's event types, loaded once per process."""
    return load_contracts(settings().schemas_folder, PLATFORM_EVENTS)


def load_contracts(folder: Path, *others: Path) -> Contracts:
    """Read and check every schema file of the folders. Raises ContractError."""
    if not any(folder.glob("*.json")):
        raise ContractError(f"{folder}: no <event_type>.v<N>.json in it")
    files = [file for source in (folder, *others) for file in source.glob("*.json")]
    every = sorted(map(_read, files), key=lambda c: (c.event_type, c.version))
    contracts = Contracts({name: tuple(of_type) for name, of_type in groupby(every, attrgetter("event_type"))})
    for event_type, of_type in contracts.versions.items():
        for version, what in compatibility.broken(of_type):
            raise ContractError(f"{folder}/{event_type}.v{version}.json: {what}")
    for contract in contracts:
        if (contract.compacted or contract.nested) and len(contracts.by_topic(contract.topic)) > 1:
            what = "compacted topic" if contract.compacted else "topic of nested records"
            raise ContractError(f"{folder}: the {what} {contract.topic} carries more than one event type")
    return contracts


def _read(path: Path) -> Contract:
    try:
        return _contract(path.name, json.loads(path.read_text("utf-8")))
    except SchemaError as error:
        raise ContractError(f"{path}: not a JSON Schema: {error.message} at {error.json_path}") from None
    except ValueError as error:
        raise ContractError(f"{path}: {error}") from None


def _contract(file_name: str, schema: dict[str, Any]) -> Contract:
    named = _FILE.fullmatch(file_name)
    if not named:
        raise ValueError("the name must be <event_type>.v<N>.json, in lower case")
    Draft202012Validator.check_schema(schema)
    event_type, needed = named[1], set(schema.get("required", ()))
    about = schema.get("x-tidemark")
    if schema.get("type") != "object" or not isinstance(about, dict):
        raise ValueError('needs "type": "object" and the object "x-tidemark"')
    if unknown := about.keys() - TIDEMARK_KEYWORDS:
        raise ValueError(f"unknown in x-tidemark: {', '.join(sorted(unknown))}")
    properties = schema.get("properties", {})
    if other := (schema.keys() - OBJECT_KEYWORDS - {"x-tidemark"}) | (needed - properties.keys()):
        raise ValueError(f"not supported, or required but no property: {', '.join(sorted(other))}")
    fields = tuple(_field(name, field, name in needed) for name, field in properties.items())
    field_paths.check_apart(properties)
    _check_envelope(event_type, fields, needed)
    contract = Contract(
        event_type=event_type,
        version=int(named[2]),
        topic=str(about.get("topic", "" if about.get("noted") else event_type)),
        key=str(about.get("key", "")),
        compacted=about.get("compacted") is True,
        owner=str(about.get("owner", "")),
        fields=tuple(f for f in fields if f.name not in ENVELOPE and f.name != DELETED),
        schema=schema,
        is_outcome=about.get("noted") is True,
    )
    _check_meaning(contract, fields)
    return contract


def _field(name: str, schema: dict[str, Any], required: bool) -> Field:
    if unknown := schema.keys() - KEYWORDS:
        raise ValueError(f"field {name}: not supported: {', '.join(sorted(unknown))} (one of {sorted(KEYWORDS)})")
    types = types_of(schema)
    scalar = types - {"null"}
    if len(scalar) != 1 or not scalar <= ARROW.keys():
        raise ValueError(f"field {name}: type must be one of {sorted(ARROW)}, or such a type and null")
    field_paths.check(name, schema)
    erasures.check(name, schema)
    if not _PATTERN.fullmatch(schema.get("pattern", "^$")):
        raise ValueError(f"field {name}: the pattern must be ^...$ of ASCII literals and [classes], no \\d, \\w or dot")
    if schema.get("format", "date-time") != "date-time":
        raise ValueError(f"field {name}: the only format is date-time")
    if "format" in schema and (schema.get("pattern") != INSTANT_PATTERN or "enum" in schema):
        raise ValueError(f"field {name}: a date-time has the pattern {INSTANT_PATTERN} and no enum")
    if not all(isinstance(value, str) for value in schema.get("enum", ())) or (
        "const" in schema and name != "event_type"
    ):
        raise ValueError(f"field {name}: enum lists strings; const is for event_type")
    if scalar == {"integer"} and not all(isinstance(schema.get(k, 0), int) for k in ("minimum", "maximum")):
        raise ValueError(f"field {name}: the bounds of an integer are integers")
    arrow = row_types.INSTANT if "format" in schema else ARROW[scalar.pop()]
    return Field(name, arrow, required and "null" not in types, schema)


def _check_envelope(event_type: str, fields: tuple[Field, ...], needed: set[str]) -> None:
    by_name = {f.name: f for f in fields}
    if missing := [name for name in ENVELOPE if name not in by_name] or [n for n in ENVELOPE_NEEDED if n not in needed]:
        raise ValueError(f"every event type has event_id, event_type*, occurred_at* (* required); look at {missing}")
    if by_name["event_type"].schema.get("const") != event_type:
        raise ValueError(f'event_type must be {{"const": "{event_type}"}}, as the file is named')
    if by_name["occurred_at"].arrow != row_types.INSTANT or by_name["event_id"].arrow != pa.string():
        raise ValueError("occurred_at must have the format date-time, event_id must be a string")
    if taken := [f.name for f in fields if f.name in row_types.FACT.names and f.name not in (*ENVELOPE, DELETED)]:
        raise ValueError(f"names taken by the columns of every fact: {', '.join(taken)}")


def _check_meaning(contract: Contract, fields: tuple[Field, ...]) -> None:
    if contract.is_outcome and (contract.topic or contract.key or contract.compacted):
        raise ValueError("record outcomes have no topic, no key, and are not compacted")
    if not contract.is_outcome and contract.key not in {f.name for f in contract.fields if f.required}:
        raise ValueError(f"x-tidemark.key must name a required field, not {contract.key!r}")
    if not contract.owner or not contract.schema.get("description") or not contract.examples:
        raise ValueError("needs x-tidemark.owner, a description and an example")
    if not contract.compacted and any(f.name == DELETED for f in fields):
        raise ValueError("deleted is for compacted topics")
