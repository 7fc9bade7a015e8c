"""Event types as the platform knows them: fields, versions, topics; and the error of a schema file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import pyarrow as pa

from spark_jobs.contracts import field_paths, row_types
from spark_jobs.settings import ProjectError

ENVELOPE = ("event_id", "event_type", "occurred_at")
ENVELOPE_NEEDED = ("event_type", "occurred_at")
DELETED = "deleted"  # a compacted topic's event may say that it removes its key; lands in the fact's own column

INSTANT_PATTERN = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$"


class ContractError(ProjectError):
    """A schema file that cannot be used; says which file, and why."""


def types_of(rules: Mapping[str, Any]) -> set[str]:
    """The JSON types that a field may have."""
    types = rules.get("type", ["string"])
    return {types} if isinstance(types, str) else set(types)


@dataclass(frozen=True)
class Field:
    """One field beyond the envelope. `required`: never null in a fact (a tombstone's excepted)."""

    name: str
    arrow: pa.DataType
    required: bool
    schema: dict[str, Any]


@dataclass(frozen=True, eq=False)
class Contract:
    """One version of an event type."""

    event_type: str
    version: int
    topic: str
    key: str
    compacted: bool
    owner: str
    fields: tuple[Field, ...]
    schema: dict[str, Any]
    is_outcome: bool = False  # what the platform itself says of records: it has no topic, and nobody may send it

    @cached_property
    def nested(self) -> bool:
        """Whether fields stand inside other objects of the record (`field_paths`)."""
        return any(field_paths.KEYWORD in rules for rules in self.schema["properties"].values())

    def flat(self, event: dict[str, Any]) -> dict[str, Any]:
        """The flat event to which the schema's rules apply. Raises field_paths.Misplaced."""
        return field_paths.lifted(event, self.schema["properties"]) if self.nested else event

    @cached_property
    def fact_schema(self) -> pa.Schema:
        """Arrow schema of the facts: `row_types.FACT`, then the fields."""
        return pa.schema([*row_types.FACT, *[pa.field(f.name, f.arrow) for f in self.fields]])

    @property
    def examples(self) -> tuple[dict[str, Any], ...]:
        return tuple(self.schema.get("examples", ()))

    @property
    def examples_bad(self) -> tuple[dict[str, Any], ...]:
        """What makes the first good example break one rule: `change` or `without`, with its `reason` and `field`."""
        return tuple(self.schema["x-tidemark"].get("examples_bad", ()))


@dataclass(frozen=True, eq=False)
class Contracts:
    """Every event type with its versions, oldest first."""

    versions: Mapping[str, tuple[Contract, ...]]

    def of(self, event_type: str) -> Contract:
        """The newest version; KeyError where the type is unknown."""
        return self.versions[event_type][-1]

    def version(self, event_type: str, version: int) -> Contract | None:
        return next((c for c in self.versions.get(event_type, ()) if c.version == version), None)

    def by_topic(self, topic: str) -> tuple[str, ...]:
        """Event types that the topic carries; empty where the topic is unknown."""
        return self._by_topic.get(topic, ())

    @cached_property
    def _by_topic(self) -> dict[str, tuple[str, ...]]:
        return {
            t: tuple(c.event_type for c in self if c.topic == t) for t in {c.topic for c in self if not c.is_outcome}
        }

    @property
    def every(self) -> Iterator[Contract]:
        """Every version of every event type."""
        return chain.from_iterable(self.versions.values())

    @property
    def event_types(self) -> tuple[str, ...]:
        return tuple(self.versions)

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted(self._by_topic))

    def __iter__(self) -> Iterator[Contract]:
        return (self.of(event_type) for event_type in self.versions)

    def __contains__(self, event_type: object) -> bool:
        return event_type in self.versions
