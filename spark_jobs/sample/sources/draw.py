"""What every source of the town draws from: random numbers, ids and times of n events.

(plan, event type, block number) -> Draw -> a source -> keys, values (JSON bytes; None removes the key) of n events

Values are built by formatting: a dictionary and json.dumps for each event would cost five times as much.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spark_jobs.sample.block import Bytes

Ints = NDArray[np.int64]
Built = tuple[list[bytes], Sequence[Bytes]]


@dataclass(frozen=True)
class Draw:
    """n events of one type, numbers `first` to `first + n - 1` of the town since its start.

    occurred_ms: milliseconds since 1970; tag: names the town, so that two towns share no ids; rate: events a second.
    """

    rng: np.random.Generator
    first: int
    occurred_ms: Ints
    tag: str
    rate: float

    @property
    def n(self) -> int:
        return len(self.occurred_ms)

    def integers(self, low: int, high: int) -> list[int]:
        """n of low..high, both included, equally likely."""
        drawn: list[int] = self.rng.integers(low, high, self.n, endpoint=True).tolist()
        return drawn

    def envelopes(self) -> list[str]:
        """`event_id` and `occurred_at` of each event, as JSON members."""
        at = instants(self.occurred_ms)
        return [f'"event_id":"{i}","occurred_at":"{t}Z"' for i, t in zip(self._ids(), at, strict=True)]

    def _ids(self) -> list[str]:
        """Random UUIDs of version 4, from the town's random numbers."""
        digits = _HEX[self.rng.integers(0, 256, (self.n, 16), np.uint8)].reshape(self.n, 32)
        digits[:, 12], digits[:, 16] = ord("4"), ord("8")
        text = np.full((self.n, 36), ord("-"), np.uint8)
        text[:, _DIGITS] = digits
        ids: list[str] = text.view("S36")[:, 0].astype("U36").tolist()
        return ids


Source = Callable[[Draw], Built]

_HEX = np.frombuffer(b"".join(b"%02x" % i for i in range(256)), np.uint8).reshape(256, 2)
_DIGITS = [i for i in range(36) if i not in (8, 13, 18, 23)]


def instants(ms: Ints) -> list[str]:
    """2025-03-01T12:00:00.000 of each; without the Z."""
    text: list[str] = np.datetime_as_string(ms.astype("datetime64[ms]")).tolist()
    return text


def encoded(texts: Iterable[str]) -> list[bytes]:
    return [text.encode() for text in texts]
