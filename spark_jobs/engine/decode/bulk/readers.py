"""Make a typed JSON reader out of an event type's schema.

schema, members that it does not name -> shape_of -> Shape; bytes -> Shape.read -> object

The reader is msgspec's. It takes strict JSON of the schema's types, and no member that it does not know; so the members
that records have beside the schema's are named as well. What it leaves open, `columns` proves.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import NoneType
from typing import Annotated, Any, Literal, Union

import msgspec

from spark_jobs.contracts.field_paths import ABSENT, KEYWORD, Path, is_text, paths
from spark_jobs.contracts.model import Contract, types_of

Types = frozenset[Any]

INT64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES = {"string": str, "integer": INT64, "number": float, "boolean": bool, "null": NoneType}
_CERTAIN = {frozenset({str}): str, frozenset({INT64}): int, frozenset({float}): float, frozenset({bool}): bool}
_MAY_BE_ABSENT = type(ABSENT)
_UNNAMEABLE = {*map(chr, range(32)), '"', "\\"}  # what the name of a struct's member cannot have


@dataclass(frozen=True)
class Shape:
    """An object: its members in order. Each is an object itself, certainly of one type, or of several types (None)."""

    struct: type[msgspec.Struct]  # its members are m0, m1, ...
    members: dict[str, "Shape | type | None"]

    @cached_property
    def read(self) -> Callable[[bytes], Any]:
        """Raises where the bytes are no such object."""
        return msgspec.json.Decoder(self.struct).decode

    def unknown(self, value: Any) -> Iterator[Path]:
        """The members of a value that the shape does not have."""
        for name, inner in value.items() if isinstance(value, dict) else ():
            shape = self.members.get(name)
            if isinstance(shape, Shape):
                yield from ((name, *path) for path in shape.unknown(inner))
            elif name not in self.members and _UNNAMEABLE.isdisjoint(name):
                yield (name,)


@lru_cache(maxsize=256)
def shape_of(contract: Contract, unknown: frozenset[Path]) -> Shape:
    """The shape of records that may have these members beside the schema's."""
    leaves: dict[Path, Types] = {}
    for name, rules in contract.schema["properties"].items():
        types = _types(name, rules, contract)
        for path in paths(rules.get(KEYWORD, name)) if types else ():
            leaves[path] = leaves.get(path, types) & types
    leaves |= dict.fromkeys(sorted(unknown), frozenset({Any, _MAY_BE_ABSENT}))
    return _shape(leaves)


def _types(name: str, rules: Mapping[str, Any], contract: Contract) -> Types:
    """What may stand at the field's places. Nothing for the type of a nested event: the topic says it."""
    if "const" in rules:
        return frozenset() if contract.nested else frozenset({Literal[rules["const"]]})
    types = {_TYPES[kind] for kind in types_of(rules)}
    if not contract.nested:
        return frozenset(types if name in contract.schema["required"] else {*types, _MAY_BE_ABSENT})
    if is_text(rules.get(KEYWORD, name)):
        types = {str, INT64}  # nobody makes an id of 1.50
    return frozenset({*types, *([INT64] if "format" in rules else []), NoneType, _MAY_BE_ABSENT})


def _shape(leaves: Mapping[Path, Types]) -> Shape:
    members: dict[str, Shape | type | None] = {}
    fields: list[Any] = []
    for name in dict.fromkeys(path[0] for path in leaves):
        below = {path[1:]: types for path, types in leaves.items() if path[0] == name}
        member = members[name] = _CERTAIN.get(below[()]) if () in below else _shape(below)
        types = {member.struct, NoneType, _MAY_BE_ABSENT} if isinstance(member, Shape) else below[()]
        default = [ABSENT] if _MAY_BE_ABSENT in types else []
        fields.append((f"m{len(fields)}", Union[tuple(types - {_MAY_BE_ABSENT})], *default))  # noqa: UP007
    names = {field[0]: name for field, name in zip(fields, members, strict=True)}
    struct = msgspec.defstruct("Record", fields, kw_only=True, forbid_unknown_fields=True, gc=False, rename=names)
    return Shape(struct, members)
