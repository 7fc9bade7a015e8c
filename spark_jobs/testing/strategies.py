"""Random histories of events, from their schemas: late, out of order, repeated; for the laws of views.

event types + the fields in use -> Hypothesis -> micro-batches of events, as in events.yaml of a case.
Values are few, so that events meet, and times lie on a grid, so that edges are met.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_jobs.contracts.model import Contract, Field
from spark_jobs.testing.cases import Batches

START = datetime(2026, 1, 5, 23, tzinfo=UTC)  # an hour before a day ends
STEPS = 12
AT_ONCE = 4
MOST_EVENTS = AT_ONCE * AT_ONCE
DELAYS = (0, -1, *(edge + more for edge in (60_000, 3_600_000, 86_400_000) for more in (0, 1)))  # milliseconds
Event = Mapping[str, Mapping[str, Any]]
Place = tuple[str, str]  # event type and field


@dataclass(frozen=True)
class Source:
    """What histories are made of. used: fields that vary; values: field -> what it may be; step: between times.

    unique: fields of which no two events of a history have the same value.
    with_arrival: Kafka takes records of them earlier or later, and some are rejected.
    """

    types: Sequence[Contract]
    used: frozenset[str]
    values: Mapping[str, Sequence[Any]]
    step: timedelta
    with_arrival: bool = False
    unique: frozenset[str] = frozenset()


@st.composite
def histories(draw: st.DrawFn, source: Source) -> tuple[Batches, Batches]:
    """Micro-batches of random events, late and out of order: each event once, and the same with repetitions."""
    pools: dict[Place, st.SearchStrategy[Any]] = {}
    texts: dict[str, list[str]] = {}
    for contract in source.types:
        for field in contract.fields:
            if field.name in source.used or field.name == contract.key or field.name in source.values:
                pools[contract.event_type, field.name] = _values(field, source, texts, draw)
    sizes, numbers = draw(st.lists(st.integers(0, AT_ONCE), min_size=1, max_size=AT_ONCE)), count()
    types = st.sampled_from(source.types)
    once = [[_event(draw, source, draw(types), pools, next(numbers)) for _ in range(size)] for size in sizes]
    repeated = [list(batch) for batch in once]
    for place, batch in enumerate(once):
        for event in batch:
            has_id = all("event_id" in fields for fields in event.values())  # a null value on a changelog has none
            if has_id and draw(st.integers(0, 4)) == 4:
                repeated[draw(st.integers(place, len(once) - 1))].append(event)
    return once, repeated


def _values(field: Field, source: Source, texts: dict[str, list[str]], draw: st.DrawFn) -> st.SearchStrategy[Any]:
    """A few values, so that events meet; for a pattern the two texts that were drawn for the history."""
    if field.name in source.values:
        return st.sampled_from(list(source.values[field.name]))
    rules, kind = field.schema, field.arrow
    if "enum" in rules:
        values: list[Any] = list(rules["enum"])
    elif pa.types.is_boolean(kind):
        values = [False, True]
    elif pa.types.is_timestamp(kind):
        values = [_instant(START + source.step * place) for place in range(STEPS)]
    elif pa.types.is_string(kind) and "pattern" in rules:
        if rules["pattern"] not in texts:
            texts[rules["pattern"]] = draw(_two(rules["pattern"], rules.get("maxLength", 1_000)))
        values = list(texts[rules["pattern"]])
    elif pa.types.is_string(kind):
        least, most = rules.get("minLength", 0), rules.get("maxLength", 1_000)
        values = [text for text in ("", "a", "a b, B", "été 雪") if least <= len(text) <= most]
    else:
        least, most = rules.get("minimum", -(2**53)), rules.get("maximum", 2**53)
        numbers = (least, least + 1, 0, 1, 2, 5, 100, most if most < 10**6 else 50_000)
        exact = [number for number in dict.fromkeys(numbers) if least <= number <= most]
        values = [float(number) for number in exact] if pa.types.is_floating(kind) else exact
    return st.sampled_from(values if field.required else [*values, None])


def _own(field: Field, source: Source, number: int) -> Any:
    """The value of the event of this number alone. Raises ValueError where `values` has to give them."""
    if field.name in source.values:
        given = source.values[field.name]
        if number < len(given):
            return given[number]
        raise ValueError(
            f"{field.name} is unique and has {len(given)} values: a history has up to {MOST_EVENTS} events"
        )
    if not pa.types.is_string(field.arrow):
        return field.schema.get("minimum", 0) + number
    pattern = field.schema.get("pattern", "^.*$")[1:-1]
    for text in (f"{number}", f"u{number}", f"{number:08x}-0000-4000-8000-000000000000"):
        if re.fullmatch(pattern, text):
            return text
    raise ValueError(f"{field.name} is unique: give {MOST_EVENTS} values of it, as they have a pattern of their own")


def _two(pattern: str, most: int) -> st.SearchStrategy[list[str]]:
    texts = st.from_regex(pattern, fullmatch=True, alphabet=st.characters(codec="ascii"))
    return st.lists(texts.filter(lambda text: len(text) <= most), min_size=2, max_size=2, unique=True)


def _event(
    draw: st.DrawFn, source: Source, contract: Contract, pools: Mapping[Place, st.SearchStrategy[Any]], number: int
) -> Event:
    at = _instant(START + source.step * draw(st.integers(0, STEPS - 1)))
    fields: dict[str, Any] = {"occurred_at": at}
    if contract.compacted and draw(st.integers(0, 4)) == 4:
        fields |= {contract.key: draw(pools[contract.event_type, contract.key]), "deleted": True}
    else:
        fields |= {name: draw(values) for (of, name), values in pools.items() if of == contract.event_type}
        fields |= {field.name: _own(field, source, number) for field in contract.fields if field.name in source.unique}
        fields["event_id"] = f"{number:08x}-0000-4000-8000-000000000000"
        fields |= _arrival(draw, contract, datetime.fromisoformat(at)) if source.with_arrival else {}
    return {contract.event_type: fields}


def _arrival(draw: st.DrawFn, contract: Contract, at: datetime) -> Mapping[str, str]:
    """When Kafka took the record, at the edges of being late; and now and then why it is no fact."""
    arrival = {"timestamp": _instant(at + timedelta(milliseconds=draw(st.sampled_from(DELAYS))))}
    reasons = ["not_json", *(bad["reason"] for bad in contract.examples_bad)]
    return arrival | ({"rejected": draw(st.sampled_from(reasons))} if draw(st.integers(0, 3)) == 3 else {})


def _instant(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
