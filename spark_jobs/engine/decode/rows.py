"""The verdict on one record: the slow, obvious way, and the one that decides.

record -> judge -> Fact, or Rejected with its reason.

`strict_json` reads the text, JSON Schema decides with the `jsonschema` library, then values become Arrow's. What
`bulk` proves must equal what is said here.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import pyarrow as pa
from jsonschema import Draft202012Validator, ValidationError, validators

from spark_jobs.contracts.field_paths import Misplaced
from spark_jobs.contracts.model import DELETED, INSTANT_PATTERN, Contract, Contracts, Field
from spark_jobs.contracts.row_types import INSTANT, INSTANTS, YEARS
from spark_jobs.engine.decode.reasons import Reason, Rejected, shown
from spark_jobs.engine.decode.strict_json import Written, no_constant, parse
from spark_jobs.expressions.epoch import since_epoch

VERSION_HEADER = "schema_version"  # Kafka header, decimal digits; without it a record is read by the newest version

NEWEST = -1  # in place of a stated version

Record = Mapping[str, Any]  # topic, key, value, headers, timestamp (microseconds since 1970)
Headers = Sequence[Mapping[str, Any]] | None
_REASONS = {
    "type": Reason.WRONG_TYPE,
    "enum": Reason.NOT_IN_ENUM,
    "minimum": Reason.OUT_OF_RANGE,
    "maximum": Reason.OUT_OF_RANGE,
    "minLength": Reason.BAD_LENGTH,
    "maxLength": Reason.BAD_LENGTH,
    "pattern": Reason.BAD_PATTERN,
}


@dataclass(frozen=True)
class Fact:
    """One accepted record; `values` in the order of the newest contract's fields. Instants: microseconds since 1970."""

    event_type: str
    version: int
    event_id: str | None
    occurred_at: int
    deleted: bool
    values: list[Any] = field(default_factory=list)


def judge(record: Record, contracts: Contracts) -> Fact:
    """One record's fact. Raises Rejected."""
    topic, value = record["topic"], record["value"]
    event_types = contracts.by_topic(topic)
    if not event_types:
        raise Rejected(Reason.UNKNOWN_TOPIC, f"no schema for topic {shown(topic)}")
    if value is None:
        return _tombstone(record, contracts.of(event_types[0]))
    event = parse(value)
    if contracts.of(event_types[0]).nested:
        event["event_type"] = event_types[0]  # the topic says it: the record's own fields stand further inside
    contract = _contract(event, topic, record["headers"], contracts)
    try:
        return _fact(_flat(event, contract), contract, contracts.of(contract.event_type))
    except Rejected as rejected:
        raise rejected.about(contract.event_type, contract.version) from None


def instant(text: str, name: str) -> int:
    """Microseconds since 1970 of a strictly written UTC time. Raises Rejected."""
    if int(text[:4]) not in YEARS:
        raise Rejected(Reason.TIME_OUT_OF_RANGE, f"{shown(text)}: years {YEARS[0]} to {YEARS[-1]}", name)
    year, month, day = int(text[:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second, milliseconds = int(text[11:13]), int(text[14:16]), int(text[17:19]), int(text[20:23])
    try:
        at = datetime(year, month, day, hour, minute, second, milliseconds * 1000, UTC)
    except ValueError as error:
        raise Rejected(Reason.IMPOSSIBLE_TIME, f"{shown(text)}: {error}", name) from None
    return since_epoch(at)


def _contract(event: dict[str, Any], topic: str, headers: Headers, contracts: Contracts) -> Contract:
    event_type = event.get("event_type")
    if "event_type" not in event:
        raise Rejected(Reason.MISSING_FIELD, "event_type is required", "event_type")
    if not isinstance(event_type, str):
        raise Rejected(Reason.NULL_FIELD if event_type is None else Reason.WRONG_TYPE, shown(event_type), "event_type")
    if event_type not in contracts:
        raise Rejected(Reason.UNKNOWN_EVENT_TYPE, shown(event_type), "event_type")
    newest = contracts.of(event_type)
    try:
        if newest.topic != topic:
            where = f"belongs to {newest.topic}" if newest.topic else "is for the platform alone to note"
            raise Rejected(Reason.WRONG_TOPIC, f"{event_type} {where}", "event_type")
        return _version(newest, headers, contracts)
    except Rejected as rejected:
        raise rejected.about(event_type) from None


def stated_version(header: bytes | None) -> int:
    """The version that a header's value names; 0, which no schema has, where it is no number."""
    digits = (header or b"").decode("latin-1")
    return int(digits) if re.fullmatch("[0-9]{1,9}", digits) else 0


def _version(newest: Contract, headers: Headers, contracts: Contracts) -> Contract:
    named = [header["value"] for header in headers or () if header["key"] == VERSION_HEADER]
    stated = stated_version(named[-1]) if named else NEWEST  # Kafka: the last header of a name counts
    found = newest if stated == NEWEST else contracts.version(newest.event_type, stated)
    if found is None:
        raise Rejected(Reason.UNKNOWN_VERSION, f"{newest.event_type} has no version {shown(named[-1])}")
    return found


def _fact(event: dict[str, Any], contract: Contract, newest: Contract) -> Fact:
    _check_schema(event, exact := event | _exact_integers(event, contract), contract)
    return Fact(
        event_type=contract.event_type,
        version=contract.version,
        event_id=event.get("event_id"),
        occurred_at=instant(event["occurred_at"], "occurred_at"),
        deleted=contract.compacted and bool(event.get(DELETED)),
        values=[
            _value(f, exact.get(f.name)) if f.name in contract.schema["properties"] else None for f in newest.fields
        ],
    )


def _flat(event: dict[str, Any], contract: Contract) -> dict[str, Any]:
    try:
        return contract.flat(event)
    except Misplaced as error:
        reason = Reason.TIME_OUT_OF_RANGE if error.is_time else Reason.WRONG_TYPE
        raise Rejected(reason, str(error)[:300], error.field) from None


def _tombstone(record: Record, contract: Contract) -> Fact:
    if not contract.compacted:
        raise Rejected(Reason.NULL_VALUE, "null value, but the topic is not compacted")
    key = next(f for f in contract.fields if f.name == contract.key)
    try:
        value = _key(record["key"], key, contract)
    except (Rejected, ValueError) as error:
        text = f"key {shown(record['key'])}: {getattr(error, 'detail', error)}"
        raise Rejected(Reason.BAD_KEY, text, key.name).about(contract.event_type, contract.version) from None
    values = [value if f is key else None for f in contract.fields]
    if record["timestamp"] not in INSTANTS:
        raise Rejected(Reason.TIME_OUT_OF_RANGE, f"Kafka timestamp {record['timestamp']} us").about(contract.event_type)
    return Fact(contract.event_type, contract.version, None, record["timestamp"], True, values)


def _key(key: bytes | None, of: Field, contract: Contract) -> Any:
    """The key field's value from a Kafka key: the value as text. Raises Rejected or ValueError."""
    text = (key or b"").decode("utf-8")
    if contract.nested:
        value = parse(key or b"").get(of.name)
    else:
        value = text if of.arrow == pa.string() else json.loads(text, parse_constant=no_constant)
    for error in _rules(contract)[of.name].iter_errors(value):
        raise _broken(error, of.name, value)
    return _value(of, value)


def _exact_integers(event: dict[str, Any], contract: Contract) -> dict[str, Any]:
    """The integer fields that are written as 1.0 or 1e2, or with too many digits."""
    written = {f.name: event.get(f.name) for f in contract.fields if f.arrow == pa.int64()}
    return {name: value.integral() for name, value in written.items() if isinstance(value, Written)}


def _check_schema(event: dict[str, Any], exact: dict[str, Any], contract: Contract) -> None:
    """Raises Rejected for the first broken rule, in the order of the schema's fields; shows values as written.

    Field by field is the whole schema: `contracts` lets no other keyword of an object than properties and required.
    """
    for name, rule in _rules(contract).items():
        if name not in event:
            if name in contract.schema["required"]:
                raise Rejected(Reason.MISSING_FIELD, f"{name} is required", name)
        elif error := next(rule.iter_errors(exact[name]), None):
            raise _broken(error, name, event[name])


def _exact_pattern(_: Any, pattern: str, text: Any, schema: Any) -> Iterator[ValidationError]:
    """As ECMA-262 reads `^...$`; Python's `$` would let a line break pass."""
    if isinstance(text, str) and not re.fullmatch(pattern[1:-1], text):
        yield ValidationError("does not match")


_Validator: Any = validators.extend(Draft202012Validator, {"pattern": _exact_pattern})  # type: ignore[no-untyped-call]


@cache
def _rules(contract: Contract) -> dict[str, Any]:
    """By field: its part of the schema, as a validator."""
    return {name: _Validator(schema) for name, schema in contract.schema["properties"].items()}


def _broken(error: ValidationError, name: str, value: Any) -> Rejected:
    reason = _REASONS[str(error.validator)]
    if reason is Reason.WRONG_TYPE and value is None:
        reason = Reason.NULL_FIELD
    if reason is Reason.BAD_PATTERN and error.validator_value == INSTANT_PATTERN:
        reason = Reason.BAD_TIMESTAMP
    return Rejected(reason, f"{shown(value)}, {error.validator} is {shown(error.validator_value)}"[:300], name)


def _value(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.arrow == INSTANT:
        return instant(value, field.name)
    if field.arrow == pa.int64() and not -(2**63) <= value < 2**63:
        raise Rejected(Reason.NUMBER_TOO_LARGE, f"{shown(value)} is beyond 64 bits", field.name)
    if field.arrow == pa.float64() and abs(value) == float("inf"):
        raise Rejected(Reason.NUMBER_TOO_LARGE, f"{shown(value.text)} is beyond a double", field.name)
    return float(value) if field.arrow == pa.float64() else value
