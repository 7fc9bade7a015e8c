"""The town's events as Kafka records: on time or late, once or twice, whole or broken; the same for the same plan.

plan -> town (events of each type, in blocks) -> late, out of order, broken, repeated -> Block -> producer

Each (plan, event type, block number) has random numbers of its own, so neither pacing nor the other types nor the
number of events asked for changes a byte.
"""

import hashlib
import heapq
import math
from collections.abc import Iterator
from dataclasses import astuple, dataclass

import numpy as np

from spark_jobs.contracts.model import Contract, Contracts
from spark_jobs.sample.block import Block, Bytes, Outcome
from spark_jobs.sample.record_batches import Header
from spark_jobs.sample.sources.draw import Draw, Ints, Source
from spark_jobs.sample.sources.malformed import Way, ways
from spark_jobs.sample.sources.town import SHARES, sources

BLOCK = 8192
LATE_FROM_MS, DAY_MS = 60_000, 86_400_000
OUT_OF_ORDER_MS = (1_000, 30_000)
NEAR = 200  # half of the duplicates come at most so many records after their first; the others any time later
REMEMBERED, REMEMBER_EVERY = 20_000, 50


@dataclass(frozen=True)
class Plan:
    """What decides every byte. Shares are of all records of a type; rate: records a second, in the town's time."""

    seed: int
    start_ms: int
    rate: float
    late_share: float = 0.0
    late_max_days: float = 2.0
    duplicate_share: float = 0.0
    out_of_order_share: float = 0.0
    malformed_share: float = 0.0

    @property
    def digest(self) -> int:
        return int.from_bytes(hashlib.sha256(repr(astuple(self)).encode()).digest()[:16], "big")

    @property
    def tag(self) -> str:
        """Short, and another one for another plan."""
        return f"{self.digest:032x}"[:8]

    def headers(self, contracts: Contracts) -> dict[str, list[Header]]:
        """Topic -> the headers of its records."""
        version = {e: str(contracts.of(e).version).encode() for e in SHARES}
        return {e: [("schema_version", version[e]), ("producer", f"town-{self.tag}".encode())] for e in SHARES}


def counts(events: int) -> dict[str, int]:
    """How many records of each type add up to `events`: largest remainders."""
    whole = {event_type: math.floor(events * share) for event_type, share in SHARES.items()}
    by_rest = sorted(SHARES, key=lambda e: whole[e] - events * SHARES[e])
    return {e: whole[e] + (by_rest.index(e) < events - sum(whole.values())) for e in SHARES}


def duration(events: int, rate: float) -> float:
    """Seconds in which `events` records happen; a rare type may need a little longer than the others."""
    return max(count / SHARES[event_type] for event_type, count in counts(events).items()) / rate


def blocks(plan: Plan, contracts: Contracts, events: int | None = None) -> Iterator[Block]:
    """All types' blocks, ordered by the due time of their first record; without `events` they never end."""
    most = counts(events) if events is not None else dict.fromkeys(SHARES)
    town = sources(plan.rate)
    streams = [_stream(plan, contracts.of(e), town[e], most[e]) for e in SHARES]
    return heapq.merge(*streams, key=lambda block: block.due[0])


def _stream(plan: Plan, contract: Contract, source: Source, most: int | None) -> Iterator[Block]:
    """The blocks of one event type, `most` records in all."""
    event_type, broken = contract.event_type, ways(contract)
    rate = plan.rate * SHARES[event_type]
    repeats = _Repeats(plan.duplicate_share)
    first = 0
    while most is None or first < most:
        rng = np.random.default_rng([plan.digest, list(SHARES).index(event_type), first])
        due = plan.start_ms + ((first + np.arange(BLOCK) + rng.random(BLOCK)) / rate * 1000).astype(np.int64)
        keys, values = source(Draw(rng, first, _occurred(plan, rng, due), plan.tag, rate))
        block = Block(event_type, [*keys], [*values], [], [], due.tolist())
        block = _spoilt(block, broken, plan.malformed_share, rng, may_lack_key=not contract.compacted)
        block = repeats(block, rng)
        yield block if most is None else block[: most - first]
        first += BLOCK


def _occurred(plan: Plan, rng: np.random.Generator, due: Ints) -> Ints:
    """When the events happened: when they are due, a little or (log-uniform: minutes, hours, days) much earlier."""
    chance = rng.random(len(due))
    late = np.exp(rng.uniform(math.log(LATE_FROM_MS), math.log(plan.late_max_days * DAY_MS), len(due))).astype(np.int64)
    little = rng.integers(*OUT_OF_ORDER_MS, len(due))
    is_late = chance < plan.late_share
    is_out_of_order = ~is_late & (chance < plan.late_share + plan.out_of_order_share)
    return due - np.where(is_late, late, 0) - np.where(is_out_of_order, little, 0)


def _spoilt(block: Block, broken: list[Way], share: float, rng: np.random.Generator, *, may_lack_key: bool) -> Block:
    """Some records broken, each in one of the ways; every tenth way loses the key as well.

    Kafka takes no record without a key, nor the others of its batch, for a compacted topic.
    """
    keys, values = [*block.keys], [*block.values]
    outcomes: list[str] = [Outcome.FACT.value] * len(block)
    reasons: list[str | None] = [None] * len(block)
    chosen = rng.integers(0, len(broken), len(block)).tolist()
    for i in np.flatnonzero(rng.random(len(block)) < share).tolist():
        if (value := values[i]) is None:
            continue
        way = broken[chosen[i]]
        values[i], outcomes[i], reasons[i] = way.apply(value), Outcome.REJECTED.value, way.reason
        if may_lack_key and chosen[i] % 10 == 9:
            keys[i] = None
    return Block(block.topic, keys, values, outcomes, reasons, block.due)


class _Repeats:
    """Replaces some records by earlier ones of the type: the same key and bytes, so the same event_id.

    A repeated null value is another fact: it has no event_id.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._old: list[tuple[Bytes, Bytes]] = []  # facts of earlier blocks, however long ago

    def __call__(self, block: Block, rng: np.random.Generator) -> Block:
        keys, values = [*block.keys], [*block.values]
        outcomes, reasons = [*block.outcomes], [*block.reasons]
        is_near, back, pick = rng.random(len(block)) < 0.5, rng.integers(1, NEAR, len(block)), rng.random(len(block))
        for i in np.flatnonzero(rng.random(len(block)) < self._share).tolist():
            if self._old and not is_near[i]:
                keys[i], values[i] = self._old[int(pick[i] * len(self._old))]
                outcomes[i], reasons[i] = Outcome.DUPLICATE.value, None
            elif i:
                j = max(0, i - int(back[i]))
                keys[i], values[i], reasons[i] = keys[j], values[j], reasons[j]
                is_again = outcomes[j] != Outcome.REJECTED and values[j] is not None
                outcomes[i] = Outcome.DUPLICATE.value if is_again else outcomes[j]
        self._remember(keys, values, outcomes, rng)
        return Block(block.topic, keys, values, outcomes, reasons, block.due)

    def _remember(self, keys: list[Bytes], values: list[Bytes], outcomes: list[str], rng: np.random.Generator) -> None:
        for i in range(0, len(values), REMEMBER_EVERY):
            if outcomes[i] == Outcome.FACT and values[i] is not None:
                if len(self._old) >= REMEMBERED:
                    self._old[int(rng.integers(REMEMBERED))] = keys[i], values[i]
                else:
                    self._old.append((keys[i], values[i]))
