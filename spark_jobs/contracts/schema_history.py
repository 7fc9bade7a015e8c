"""Which schema versions are in force at which lsn. The log itself says it, so the log decides what its records mean.

master.log (rows of kind `schema` and `revision`) -> SchemaHistory -> the Contracts of an lsn, and what was said of
single records (`revisions`).
A version is in force from its entry on. The versions that existed when the log began stand at lsn 0.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import erasures, row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import ContractError, Contracts
from spark_jobs.contracts.revisions import Revision, Revisions
from spark_jobs.settings import settings

TELLING = {"title", "description", "examples", "$comment", "$id", "$schema", "owner", "examples_bad", erasures.KEYWORD}
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
    revisions: Revisions = field(default_factory=Revisions)

    def at(self, lsn: int) -> Contracts:
        """The versions in force at an lsn."""
        if not self.entries:
            return project_contracts()
        return _in_force(frozenset((entry.event_type, entry.version) for entry in self.entries if entry.lsn <= lsn))

    def eras(self, first: int, last: int, cut: int = 0) -> Iterator[tuple[int, int]]:
        """Ranges of lsns, both ends included, that are read alike by somebody who knows the log up to `cut`."""
        said = self.revisions.within(max(first, cut), last)
        new = {entry.lsn for entry in self.entries} | {one.lsn for one in said if one.identity is not None}
        begins = sorted({first, *(lsn for lsn in new if first < lsn <= last)})
        yield from ((begin, after - 1) for begin, after in pairwise([*begins, last + 1]))

    def within(self, above: int, upto: int) -> list[Entry]:
        """The entries of (above, upto]."""
        return [entry for entry in self.entries if above < entry.lsn <= upto]

    def with_new(self, lsn: int) -> "SchemaHistory":
        """This history, and every other version that there is, in force from `lsn` on."""
        known = {(entry.event_type, entry.version) for entry in self.entries}
        every = {(c.event_type, c.version) for c in project_contracts().every}
        return replace(self, entries=(*self.entries, *(Entry(lsn, *schema) for schema in sorted(every - known))))

    def revised(self, revisions: Sequence[Revision]) -> "SchemaHistory":
        """This history, and newer revisions."""
        return replace(self, revisions=Revisions((*self.revisions.entries, *revisions)))


EVERY_SCHEMA = SchemaHistory()
"""The history before a log begins."""


def rows(entries: Sequence[Entry], landed_on: date) -> pa.Table:
    """Entries as rows of the log: `key` names the schema, `value` is its text."""
    listed = []
    for new in entries:
        contract = project_contracts().versions[new.event_type][new.version - 1]
        text = json.dumps(contract.schema, ensure_ascii=False).encode()
        row = {"lsn": new.lsn, "landed_on": landed_on, "kind": row_types.SCHEMA_ROW, "topic": contract.topic}
        listed.append({**row, "key": new.name.encode(), "value": text})
    return pa.Table.from_pylist(listed, schema=row_types.LOG)


def from_rows(logged: Sequence[dict[str, Any]]) -> SchemaHistory:
    """The history in the log's rows of kind `schema` (lsn, key, value).

    Raises ContractError if a schema file has changed since it came in force.
    """
    entries = []
    for row in logged:
        event_type, _, version = row["key"].decode().rpartition(".v")
        entries.append(Entry(row["lsn"], event_type, int(version)))
        _refuse_changed(entries[-1], json.loads(row["value"]))
    return SchemaHistory(tuple(sorted(entries)))


def _refuse_changed(entry: Entry, before: dict[str, Any]) -> None:
    known = project_contracts()
    contract = known.version(entry.event_type, entry.version)
    if contract is None:
        what = "is gone"
    elif differing := sorted(_differences(before, contract.schema)):
        what = f"says something else now ({', '.join(differing)})"
    else:
        return
    newest = known.of(entry.event_type).version if entry.event_type in known else 0
    raise ContractError(
        f"{settings().schemas_folder}/{entry.name}.json {what}, but is in force since lsn {entry.lsn}: records were "
        f"judged by it. Put it back, and write what is to change to {entry.event_type}.v{newest + 1}.json"
    )


def _differences(before: Any, now: Any, at: str = "") -> Iterator[str]:
    """Where two schemas decide differently about records."""
    if isinstance(before, dict) and isinstance(now, dict):
        telling = set() if at == "properties" else TELLING  # a field may have such a name
        for name in (before.keys() | now.keys()) - telling:
            yield from _differences(before.get(name), now.get(name), f"{at}.{name}" if at else name)
    elif before != now:
        yield at


@cache
def _in_force(versions: frozenset[tuple[str, int]]) -> Contracts:
    known = project_contracts().versions.items()
    kept = {name: tuple(c for c in of_type if (name, c.version) in versions) for name, of_type in known}
    return Contracts({name: of_type for name, of_type in kept.items() if of_type})
