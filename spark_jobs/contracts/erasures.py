"""Whose records can be erased, and what stands in the log in the place of one that was.

"user=7", the schemas' `x-subject` fields -> Subject -> which records are about it (`serving.erasing`).
a record's row -> blanked: its place and times stay, with a mark; its key, value and headers are gone.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import field_paths, row_types
from spark_jobs.contracts.model import Contract, Contracts, types_of

KEYWORD = "x-subject"
"""In a field's rules: whom it names, such as `user`."""
KIND = re.compile(r"[a-z][a-z0-9_]{0,47}")
MARK = "revision.erased"
"""The header of a record's row that was erased; its value is the lsn of the revision that says so."""
CONTENT = ("key", "value", "headers")


class NoSubject(ValueError):
    """The text names nobody whom a schema knows; it says what the schemas know."""


@dataclass(frozen=True)
class Subject:
    """Whom records are about: a kind that schemas name, and the value of its fields, as text."""

    kind: str
    value: str

    def fields(self, contracts: Contracts) -> Iterator[tuple[Contract, str]]:
        """Every version's fields that name such a subject."""
        for contract in contracts.every:
            for name, rules in contract.schema["properties"].items():
                if rules.get(KEYWORD) == self.kind:
                    yield contract, name

    def typed(self, contract: Contract, name: str) -> int | str | None:
        """The value as the facts' field has it; None where it cannot be one."""
        if "integer" not in types_of(contract.schema["properties"][name]):
            return self.value
        return int(self.value) if re.fullmatch(r"-?[0-9]{1,18}", self.value) else None

    def keyed_topics(self, contracts: Contracts) -> list[str]:
        """Topics whose Kafka key is such a field."""
        return sorted({contract.topic for contract, name in self.fields(contracts) if contract.key == name})

    def pattern(self, contracts: Contracts) -> str:
        """RE2: a JSON text that has such a field with the value, under any of its names."""
        rules = [(name, contract.schema["properties"][name]) for contract, name in self.fields(contracts)]
        paths = [path for name, of in rules for path in field_paths.paths(of.get(field_paths.KEYWORD, name))]
        names = "|".join(sorted({re.escape(path[-1]) for path in paths}))
        value = re.escape(json.dumps(self.value, ensure_ascii=False)[1:-1])
        return rf'"(?:{names})"\s*:\s*(?:{value}|"{value}")\s*(?:[,}}\]]|$)'


def subject_of(text: str, contracts: Contracts) -> Subject:
    """`KIND=VALUE`. Raises NoSubject."""
    kind, _, value = text.partition("=")
    known = {
        rules[KEYWORD]
        for contract in contracts.every
        for rules in contract.schema["properties"].values()
        if KEYWORD in rules
    }
    if kind not in known:
        raise NoSubject(
            f"{kind!r} is no kind of subject: the schemas' {KEYWORD} names {', '.join(sorted(known)) or 'none'}"
        )
    if not value:
        raise NoSubject(f"write {kind}=VALUE, with the value that the records have")
    return Subject(kind, value)


def check(name: str, rules: Mapping[str, Any]) -> None:
    """Raise ValueError if the keyword has no known form."""
    if KEYWORD not in rules:
        return
    kind = rules[KEYWORD]
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        raise ValueError(f"field {name}: {KEYWORD} is a name in lower case, such as user, not {kind!r}")
    if not types_of(rules) & {"string", "integer"} or "format" in rules:
        raise ValueError(f"field {name}: {KEYWORD} is for texts and integers")


def blanked(rows: pa.Table, lsns: Sequence[int]) -> pa.Table:
    """Rows of the log with nothing of what was sent; each says which lsn has taken it away."""
    marks = [[{"key": MARK, "value": str(lsn).encode()}] for lsn in lsns]
    rows = without_content(rows)
    place = rows.schema.get_field_index("headers")
    return rows.set_column(place, rows.schema.field(place), pa.array(marks, row_types.HEADERS))


def is_blanked(records: pa.Table) -> list[int]:
    """The numbers of the rows that were erased; of most tables, that none can be is seen at once.

    They have no key, either: a delete in a compacted topic has one, whatever its headers are.
    """
    values = records["value"]
    if not values.null_count:
        return []
    bare = pc.and_(pc.is_null(values), pc.is_null(records["key"]))
    empty = pc.and_(bare, pc.fill_null(pc.equal(pc.list_value_length(records["headers"]), 1), False))
    rows = pc.indices_nonzero(empty)
    headers: Iterable[list[dict[str, Any]]] = records["headers"].take(rows).to_pylist()
    return [row for row, [header] in zip(rows.to_pylist(), headers, strict=True) if header["key"] == MARK]


def without_content(rows: pa.Table) -> pa.Table:
    """Records as they stand in quarantine once they are erased."""
    for name in CONTENT:
        place = rows.schema.get_field_index(name)
        field = rows.schema.field(place)
        rows = rows.set_column(place, field, pa.nulls(rows.num_rows, field.type))
    return rows
