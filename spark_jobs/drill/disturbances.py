"""What a drill does to a slice before it is sent: repeats, another order, malformed records. Pure.

records of a slice, exercises, seed -> what is sent, in its order, and what each record of it is. The same seed gives
the same.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from spark_jobs.drill.slice_of_log import Found
from spark_jobs.messaging.producer import Record
from spark_jobs.orchestration.interface import EXERCISES

REPEAT, REORDER, MALFORM, KILL, REBUILD = EXERCISES
REPEATED, MALFORMED = 0.1, 0.03
"""How many of the records."""
REACH = 500
"""How many places a record moves at most."""


class Role(StrEnum):
    """What a record that is sent should become."""

    EVENT = "event"  # a fact
    REPEAT = "repeat"  # a duplicate, byte for byte an event that was sent before
    MALFORMED = "malformed"  # quarantined: an event that was broken
    REJECT = "reject"  # quarantined: no schema accepts it in the slice either


@dataclass(frozen=True)
class Sending:
    record: Record
    role: Role


BREAKS = (
    lambda value: b"",
    lambda value: value[: len(value) // 2],
    lambda value: value + b" and more",
    lambda value: b"[" + value + b"]",
    lambda value: b"\xff" + value,
    lambda value: value[:-1] + b',"note":NaN}',
)
"""JSON object -> bytes that no schema accepts."""


def disturbed(found: Iterable[Found], exercises: Collection[str], seed: int) -> list[Sending]:
    """Everything that is sent, in its order. A repeat comes after what it repeats, under the same key."""
    draw, placed = Random(seed), list[tuple[float, Sending]]()
    records = list(found)
    for place, one in enumerate(records):
        at = place + (draw.uniform(0, REACH) if REORDER in exercises else 0)
        placed.append((at, Sending(one.record, Role.EVENT if one.counts else Role.REJECT)))
        placed += _beside(one, at, max(at, len(records)), exercises, draw)
    return [sending for _, sending in sorted(placed, key=lambda pair: pair[0])]


def _beside(
    one: Found, at: float, end: float, exercises: Collection[str], draw: Random
) -> Iterator[tuple[float, Sending]]:
    """What comes of a record besides itself, each with its place."""
    can_repeat = one.counts and one.has_id and one.record.key is not None  # a key keeps it in the partition
    if REPEAT in exercises and can_repeat and draw.random() < REPEATED:
        yield draw.uniform(at, end), Sending(one.record, Role.REPEAT)
    if MALFORM in exercises and one.counts and one.record.value and draw.random() < MALFORMED:
        broken = replace(one.record, value=draw.choice(BREAKS)(one.record.value))
        yield draw.uniform(at, end), Sending(broken, Role.MALFORMED)
