"""Records for one topic, in the order in which they go out; what every source hands to the producer."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

Bytes = bytes | None


class Outcome(StrEnum):
    """What its producer means a record to become. Two runs may send one event: then both say `fact`."""

    FACT = "fact"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"


@dataclass(frozen=True)
class Block:
    """Parallel lists, one entry a record.

    `reasons`: the reason code of a rejected record (`decode.Reason`), None for others.
    `due`: milliseconds since 1970, ascending: when a paced source sends the record.
    """

    topic: str
    keys: Sequence[Bytes]
    values: Sequence[Bytes]
    outcomes: Sequence[str]
    reasons: Sequence[str | None]
    due: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice) -> "Block":
        return Block(
            self.topic, self.keys[rows], self.values[rows], self.outcomes[rows], self.reasons[rows], self.due[rows]
        )

    def take(self, rows: Sequence[int]) -> "Block":
        """The listed rows, in that order; without their due times."""
        return Block(
            self.topic,
            [self.keys[i] for i in rows],
            [self.values[i] for i in rows],
            [self.outcomes[i] for i in rows],
            [self.reasons[i] for i in rows],
        )


def facts(topic: str, keys: Sequence[Bytes], values: Sequence[Bytes], due: Sequence[int] = ()) -> Block:
    """A block of nothing but facts."""
    return Block(topic, keys, values, [Outcome.FACT.value] * len(values), [None] * len(values), due)
