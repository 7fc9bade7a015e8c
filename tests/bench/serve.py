"""SERVE: how long readers wait, over Thrift, at the read server, and with Polars on the same tables.

After one publication, with speed partials past the cut, as on any working day.
"""

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from spark_jobs.client import connect
from spark_jobs.orchestration.interface import BATCH_STEPS
from tests.bench.doors import DOORS, under_load
from tests.bench.stand import lag, stand
from tests.platform import Platform, await_true

Row = dict[str, Any]
QUERIES = {
    "select 1": "SELECT 1 AS one",
    "point": "SELECT * FROM serving.orders_by_day WHERE store_id = 3 AND day = DATE '{day}'",
    "range": "SELECT day, sum(orders) FROM serving.orders_by_day WHERE day >= DATE '{day}' GROUP BY day",
    "top-N": "SELECT word, occurrences FROM serving.word_count ORDER BY occurrences DESC, word LIMIT 10",
}
BUSIEST = "SELECT day, orders FROM serving.orders_by_day WHERE store_id = 3 ORDER BY orders DESC, day LIMIT 1"
WARMING = 40
"""Queries before the first that counts: a server that has just started interprets its own code."""
CROWDS = (16, 100)
RATE = 10_000


def serve(repeats: int, say: Callable[[str], None]) -> list[Row]:
    """A row per query: p50, p95 and p99 in seconds, and the ratio of p50 to that of `select 1`."""
    with stand("broker", "metastore", "thrift", "speed", "query") as place:
        place.tidemark("generate", "--events", "300000", "--seed", "3")
        _settle(place)
        for step in BATCH_STEPS:
            place.tidemark("batch", step, "--run-id", "bench")
        place.tidemark("generate", "--events", "50000", "--seed", "4")
        _settle(place)
        rows = measure(place, repeats, WARMING)
        beside = {f"point, read server, {clients} clients": crowd(place, clients, repeats) for clients in CROWDS}
        with under_load(place, RATE):
            beside |= {f"point, {door}, {RATE:,} events/s": busy(place, door, repeats) for door in DOORS}
        rows += [_row(name, seconds, rows[0]["p50"]) for name, seconds in beside.items()]
        place.tidemark("verify", "--all", timeout=1800)
    for row in rows:
        say(f"{row['query']}: p50 {row['p50']:.3f} s, {row['of_floor']:.1f} x select 1")
    return rows


def _settle(place: Platform) -> None:
    """Nothing is left to read: what was sent is in the merged answer."""
    time.sleep(2 * place.settings.heartbeat_seconds)  # a heartbeat from after the last record
    await_true(lambda: lag(place) == 0, 600, "the speed layer does not catch up")


def measure(place: Platform, repeats: int, warming: int) -> list[Row]:
    """What a published platform answers, and how fast; Polars has to give the same point answer.

    warming: queries of each kind before the first that counts.
    """
    [(day, orders)] = place.sql(BUSIEST)
    views = {view["view"]: view for view in json.loads(place.tidemark("views", "--format", "json"))}
    published = views["orders_by_day"]
    asked = {
        name if door == "thrift" else f"{name}, {door}": timed(place, door, query.format(day=day), repeats, warming)
        for door in DOORS
        for name, query in QUERIES.items()
    }
    asked["key, read server"] = _key(place, day, repeats, warming)
    asked["point by Polars"] = [_polars(place, day, published, orders) for _ in range(repeats)]
    floor = float(np.median(asked["select 1"]))
    return [_row(name, seconds, floor) for name, seconds in asked.items()]


def _row(query: str, seconds: list[float], floor: float) -> Row:
    """floor: that of `select 1` over Thrift."""
    p50, p95, p99 = (float(np.percentile(seconds, q)) for q in (50, 95, 99))
    return {"query": query, "p50": p50, "p95": p95, "p99": p99, "of_floor": p50 / floor}


def timed(place: Platform, door: str, query: str, repeats: int, warming: int) -> list[float]:
    """Seconds of each of `repeats` queries over one connection, after `warming` others."""
    with DOORS[door](place) as ask:
        return _each(partial(ask, query), repeats, warming)


def crowd(place: Platform, clients: int, repeats: int) -> list[float]:
    """Seconds of a point query of each of so many clients, all of which ask at once, each one after the other."""
    [(day, _)] = place.sql(BUSIEST)
    point, all_here = QUERIES["point"].format(day=day), threading.Barrier(clients)

    def client(_: int) -> list[float]:
        with DOORS["read server"](place) as ask:
            ask(point)
            all_here.wait(60)
            return _each(partial(ask, point), repeats)

    with ThreadPoolExecutor(clients) as threads:
        return [second for seconds in threads.map(client, range(clients)) for second in seconds]


def busy(place: Platform, door: str, repeats: int) -> list[float]:
    """Seconds of a point query while records come."""
    [(day, _)] = place.sql(BUSIEST)
    return timed(place, door, QUERIES["point"].format(day=day), repeats, WARMING)


def _each(ask: Callable[[], object], repeats: int, warming: int = 0) -> list[float]:
    seconds = []
    for _ in range(warming + repeats):
        begun = time.perf_counter()
        ask()
        seconds.append(time.perf_counter() - begun)
    return seconds[warming:]


def _key(place: Platform, day: date, repeats: int, warming: int) -> list[float]:
    """A look at a key of the read server."""
    own = place.settings
    with connect(own.query_url, own.query_user, own.password("query")) as door:
        return _each(lambda: door.key("orders_by_day", store_id=3, day=day), repeats, warming)


def _polars(place: Platform, day: str, published: dict[str, Any], orders: int) -> float:
    """The same merged point answer from the files: batch part plus the partials past the cut."""
    begun = time.perf_counter()
    key = (pl.col("store_id") == 3) & (pl.col("day") == pl.lit(date.fromisoformat(day)))
    column = "orders_by_day_v1"
    speed = (
        pl.scan_delta(place.delta("speed.partials"))
        .filter((pl.col("view") == column) & (pl.col("lsn") > published["cut"]))
        .select(pl.col(column).struct.field("store_id", "day", "orders"))
        .filter(key)
    )
    batch = (
        pl.scan_delta(place.delta("batch.orders_by_day"), version=published["batch"])
        .select("store_id", "day", "orders")
        .filter(key)
    )
    found = pl.concat([batch, speed]).group_by("store_id", "day").agg(pl.col("orders").sum()).collect()
    seconds = time.perf_counter() - begun
    assert found["orders"].sum() == orders, "Polars and SQL differ"
    return seconds
