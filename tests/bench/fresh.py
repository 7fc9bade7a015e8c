"""FRESH: from a record's sending until the merged SQL view shows it, at a paced rate, by each door.

A probe is one order with a store of its own, sent beside the generator; it is seen when a point query finds it.
"""

import json
import time
import uuid
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

import numpy as np
from kafka import KafkaProducer

from spark_jobs.settings import ROOT
from tests.bench.doors import DOORS, under_load
from tests.bench.stand import stand
from tests.platform import Platform, await_true

Row = dict[str, object]
POINT = "SELECT orders FROM serving.orders_by_day WHERE store_id = {store}"
FIRST_STORE = 1_000_000
PATIENCE = 60
WARMING = 60
"""Seconds of queries before the first probe: a server that has just started interprets its own code."""


def fresh(rates: tuple[int, ...], probes: int, say: Callable[[str], None]) -> list[Row]:
    """A row per rate and door: p50, p95, p99 in seconds."""
    rows: list[Row] = []
    with stand("broker", "metastore", "thrift", "speed", "query") as place:
        place.tidemark("generate", "--events", "100000", "--seed", "2")  # warms every part
        for rate in rates:
            with under_load(place, rate):
                for door in DOORS:
                    _warm(place, door)
                    first = FIRST_STORE * (len(rows) + 1)
                    found = probe(place, range(first, first + probes), door)
                    p50, p95, p99 = (float(np.percentile(found, q)) for q in (50, 95, 99))
                    rows.append({"rate": rate, "door": door, "probes": probes, "p50": p50, "p95": p95, "p99": p99})
                    say(f"{rate:,}/s, {door}: p50 {p50:.2f} s, p95 {p95:.2f} s, p99 {p99:.2f} s")
        place.tidemark("verify", "--all", timeout=1800)
    return rows


def _warm(place: Platform, door: str) -> None:
    until = time.monotonic() + WARMING
    with DOORS[door](place) as ask:
        while time.monotonic() < until:
            ask(POINT.format(store=1))


def probe(place: Platform, stores: range, door: str) -> list[float]:
    """Seconds from sending an order of each store to its being seen by this door."""
    example = json.loads((ROOT / "schemas/events/order_placed.v1.json").read_text())["examples"][0]
    seen: list[float] = []
    with DOORS[door](place) as ask, closing(KafkaProducer(bootstrap_servers=place.settings.kafka)) as producer:
        for store in stores:
            at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
            mine = {"event_id": str(uuid.uuid4()), "store_id": store, "order_id": f"probe-{store}", "occurred_at": at}
            order = {**example, **mine}
            sent = time.perf_counter()
            producer.send("order_placed", json.dumps(order).encode(), order["order_id"].encode()).get(30)

            def answered(store: int = store) -> bool:
                return ask(POINT.format(store=store)) > 0

            await_true(answered, PATIENCE, f"probe {store} was never seen", every=0.01)
            seen.append(time.perf_counter() - sent)
    return seen
