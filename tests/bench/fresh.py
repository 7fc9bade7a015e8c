"""FRESH: from a record's sending until the merged SQL view shows it, at a paced rate.

A probe is one order with a store of its own, sent beside the generator; it is seen when a point query finds it.
"""

import json
import subprocess
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
from kafka import KafkaProducer

from spark_jobs.serving.sql import thrift_login
from spark_jobs.settings import ROOT
from tests.bench.stand import Stand, stand
from tests.platform import Platform, await_true

Row = dict[str, object]
POINT = "SELECT orders FROM serving.orders_by_day WHERE store_id = {store}"
FIRST_STORE = 1_000_000
PATIENCE = 60
WARMING = 60
"""Seconds of queries before the first probe: a server that has just started interprets its own code."""


def fresh(rates: tuple[int, ...], probes: int, say: Callable[[str], None]) -> list[Row]:
    """A row per rate: p50, p95, p99 in seconds."""
    rows: list[Row] = []
    with stand("broker", "metastore", "thrift", "speed") as place:
        place.tidemark("generate", "--events", "100000", "--seed", "2")  # warms every part
        for number, rate in enumerate(rates):
            found = _under_load(place, rate, probes, FIRST_STORE * (number + 1))
            p50, p95, p99 = (float(np.percentile(found, q)) for q in (50, 95, 99))
            rows.append({"rate": rate, "probes": probes, "p50": p50, "p95": p95, "p99": p99})
            say(f"{rate:,}/s: p50 {p50:.2f} s, p95 {p95:.2f} s, p99 {p99:.2f} s")
        place.tidemark("verify", "--all", timeout=1800)
    return rows


def _under_load(place: Stand, rate: int, probes: int, first_store: int) -> list[float]:
    command = [ROOT / "tidemark", "generate", "--rate", str(rate), "--seed", str(rate)]
    with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL) as generator:
        try:
            _warm(place)
            return probe(place, range(first_store, first_store + probes))
        finally:
            generator.terminate()


def _warm(place: Platform) -> None:
    from pyhive import hive

    with hive.connect(**thrift_login(place.settings)) as connection:
        cursor, until = connection.cursor(), time.monotonic() + WARMING
        while time.monotonic() < until:
            cursor.execute(POINT.format(store=1))
            cursor.fetchall()


def probe(place: Platform, stores: range) -> list[float]:
    """Seconds from sending an order of each store to its being seen."""
    from pyhive import hive

    example = json.loads((ROOT / "schemas/events/order_placed.v1.json").read_text())["examples"][0]
    producer = KafkaProducer(bootstrap_servers=place.settings.kafka)
    seen: list[float] = []
    with hive.connect(**thrift_login(place.settings)) as connection:
        cursor = connection.cursor()
        for store in stores:
            at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z"
            mine = {"event_id": str(uuid.uuid4()), "store_id": store, "order_id": f"probe-{store}", "occurred_at": at}
            order = {**example, **mine}
            sent = time.perf_counter()
            producer.send("order_placed", json.dumps(order).encode(), order["order_id"].encode()).get(30)

            def answered(store: int = store) -> bool:
                cursor.execute(POINT.format(store=store))
                return bool(cursor.fetchall())

            await_true(answered, PATIENCE, f"probe {store} was never seen")
            seen.append(time.perf_counter() - sent)
    producer.close()
    return seen
