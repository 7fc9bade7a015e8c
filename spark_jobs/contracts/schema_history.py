"""Which schema versions are in force at which lsn. The log itself says it, so the log decides what its records mean.

master.log (rows of kind `schema`) -> SchemaHistory -> the Contracts of an lsn.
A version is in force from its entry on. The versions that existed when the log began stand at lsn 0.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contract, ContractError, Contracts
from spark_jobs.settings import settings

TELLING = {"title", "description", "examples", "$comment", "$id", "$schema", "owner", "examples_bad"}
"""Keywords of a schema that tell people something and decide nothing."""


@dataclass(frozen=True, order=True)
class Entry:
    """A version of an event type, and the lsn from which on it is in force."""

    lsn: int
    event_type: str
    version: int

    @property
    def name(self) -> str:
        return f"{self.event_type}.v{self.version}"


@dataclass(frozen=True)
class SchemaHistory:
    """`entries`: in the order of lsns. Without any, every version is in force."""

    entries: tuple[Entry, ...] = ()

    def at(self, lsn: int) -> Contracts:
        """The versions in force at an lsn."""
        if not self.entries:
            return project_contracts()
        return _in_force(frozenset((entry.event_type, entry.version) for entry in self.entries if entry.lsn <= lsn))

    def eras(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Ranges of lsns, both ends included, within which the same versions are in force."""
        begins = sorted({first, *(entry.lsn for entry in self.entries if first < entry.lsn <= last)})
        yield from ((begin, after - 1) for begin, after in pairwise([*begins, last + 1]))

    def within(self, above: int, upto: int) -> list[Entry]:
        """The entries of (above, upto]."""
        return [entry for entry in self.entries if above < entry.lsn <= upto]

    def with_new(self, lsn: int) -> "SchemaHistory":
        """This history, and every other version that there is, in force from `lsn` on."""
        known = {(entry.event_type, entry.version) for entry in self.entries}
        added = [Entry(lsn, *schema) for schema in sorted(_loaded().keys() - known)]
        return SchemaHistory((*self.entries, *added))


EVERY_SCHEMA = SchemaHistory()
"""The history before a log begins."""


def rows(entries: Sequence[Entry], landed_on: date) -> pa.Table:
    """Entries as rows of the log: `key` names the schema, `value` is its text."""
    listed = [
        {"lsn": new.lsn, "landed_on": landed_on, "kind": row_types.SCHEMA_ROW, "topic": contract.topic}
        | {"key": new.name.encode(), "value": json.dumps(contract.schema, ensure_ascii=False).encode()}
        for new in entries
        for contract in (_loaded()[new.event_type, new.version],)
    ]
    return pa.Table.from_pylist(listed, schema=row_types.LOG)


def from_rows(logged: Sequence[dict[str, Any]]) -> SchemaHistory:
    """The history in the log's rows of kind `schema` (lsn, key, value).

    Raises ContractError if a schema file has changed since it came in force.
    """
    entries = [_entry(row) for row in logged]
    for entry, row in zip(entries, logged, strict=True):
        _refuse_changed(entry, json.loads(row["value"]))
    return SchemaHistory(tuple(sorted(entries)))


def _entry(row: dict[str, Any]) -> Entry:
    event_type, _, version = row["key"].decode().rpartition(".v")
    return Entry(row["lsn"], event_type, int(version))


def _refuse_changed(entry: Entry, before: dict[str, Any]) -> None:
    contract = _loaded().get((entry.event_type, entry.version))
    if contract is None:
        what = "is gone"
    elif differing := sorted(_differences(_deciding(before), _deciding(contract.schema))):
        what = f"says something else now ({', '.join(differing)})"
    else:
        return
    raise ContractError(
        f"{settings().schemas_folder}/{entry.name}.json {what}, but is in force since lsn {entry.lsn}: records were "
        "judged by it. "
        f"Put it back, and write what is to change to {entry.event_type}.v{_newest(entry.event_type) + 1}.json"
    )


def _newest(event_type: str) -> int:
    return max((version for name, version in _loaded() if name == event_type), default=0)


def _deciding(schema: dict[str, Any]) -> dict[str, Any]:
    """The part of a schema that decides about records."""
    fields = {name: _not_telling(rules) for name, rules in schema["properties"].items()}
    return {**_not_telling(schema), "properties": fields, "x-tidemark": _not_telling(schema["x-tidemark"])}


def _not_telling(rules: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in rules.items() if name not in TELLING}


def _differences(before: Any, now: Any, at: str = "") -> Iterator[str]:
    if isinstance(before, dict) and isinstance(now, dict):
        for name in before.keys() | now.keys():
            yield from _differences(before.get(name), now.get(name), f"{at}.{name}" if at else name)
    elif before != now:
        yield at


def _loaded() -> dict[tuple[str, int], Contract]:
    return {(c.event_type, c.version): c for of_type in project_contracts().versions.values() for c in of_type}


@cache
def _in_force(versions: frozenset[tuple[str, int]]) -> Contracts:
    known = project_contracts().versions.items()
    kept = {name: tuple(c for c in of_type if (name, c.version) in versions) for name, of_type in known}
    return Contracts({name: of_type for name, of_type in kept.items() if of_type})
