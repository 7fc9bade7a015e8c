"""Check that a schema may follow another: the newest reads every record that older ones allowed, and loses no field.

two contracts of one event type -> what the later one breaks, in words.
A record that states no version is read by the newest schema, and facts of all versions are one table.
"""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from spark_jobs.contracts.field_paths import KEYWORD
from spark_jobs.contracts.model import Contract, types_of

Rules = Mapping[str, Any]


def broken(versions: tuple[Contract, ...]) -> Iterator[tuple[int, str]]:
    """(version, what is wrong with it), for every version against all that came before it."""
    newest = versions[-1]
    for number, contract in enumerate(versions, 1):
        if contract.version != number:
            yield contract.version, f"v{number} is missing"
        if (contract.topic, contract.key, contract.compacted) != (newest.topic, newest.key, newest.compacted):
            yield contract.version, "topic, key and compacted never change; make another event type"
    for old, new in combinations(versions, 2):
        for what in _breaks(old.schema, new.schema):
            yield new.version, f"{what}, unlike in v{old.version}; old records must stay readable"


def _breaks(old: Rules, new: Rules) -> Iterator[str]:
    for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
        yield f"field {name} is required"
    for name, rules in old["properties"].items():
        if name not in new["properties"]:
            yield f"field {name} is gone (keep it: facts would lose their values)"
        else:
            yield from (f"field {name} {what}" for what in _narrower(rules, new["properties"][name]))


def _narrower(old: Rules, new: Rules) -> Iterator[str]:
    """The new rules of a field that could refuse a value that the old rules took."""
    types, later = types_of(old), types_of(new)
    if old.get(KEYWORD) != new.get(KEYWORD):
        yield "stands at another place"
    if types - {"null"} != later - {"null"}:
        yield "has another type (a new type needs a new name)"
    elif types - later:
        yield "may not be null"
    if "enum" in new and not set(old.get("enum", [None])) <= set(new["enum"]):
        yield "takes fewer values"
    if new.get("pattern", old.get("pattern")) != old.get("pattern") or new.get("format") != old.get("format"):
        yield "has another pattern"
    for bound in ("minimum", "minLength"):
        if bound in new and new[bound] > old.get(bound, float("-inf")):
            yield f"has a greater {bound}"
    for bound in ("maximum", "maxLength"):
        if bound in new and new[bound] < old.get(bound, float("inf")):
            yield f"has a smaller {bound}"
