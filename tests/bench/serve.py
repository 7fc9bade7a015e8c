"""SERVE: how long readers wait, over Thrift, at the read server, and with Polars on the same tables.

After one publication, with speed partials past the cut, as on any working day.
"""

import json
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from spark_jobs.client import Door, Rows, connect
from spark_jobs.serving.sql import thrift_login
from tests.bench.stand import lag, stand
from tests.platform import Platform, await_true

Row = dict[str, object]
QUERIES = {
    "select 1": "SELECT 1",
    "point": "SELECT * FROM serving.orders_by_day WHERE store_id = 3 AND day = DATE '{day}'",
    "range": "SELECT day, sum(orders) FROM serving.orders_by_day WHERE day >= DATE '{day}' GROUP BY day",
    "top-N": "SELECT word, occurrences FROM serving.word_count ORDER BY occurrences DESC, word LIMIT 10",
}
BUSIEST = "SELECT day, orders FROM serving.orders_by_day WHERE store_id = 3 ORDER BY orders DESC, day LIMIT 1"
WARMING = 40
"""Queries before the first that counts: a server that has just started interprets its own code."""
AT_THE_READ_SERVER = QUERIES | {"select 1": "SELECT 1 AS one"}
STEPS = ("plan", "build", "audit", "publish")


def serve(repeats: int, say: Callable[[str], None]) -> list[Row]:
    """A row per query: p50 and p95 in seconds, and the ratio of p50 to that of `select 1`."""
    with stand("broker", "metastore", "thrift", "speed", "query") as place:
        place.tidemark("generate", "--events", "300000", "--seed", "3")
        _settle(place)
        for step in STEPS:
            place.tidemark("batch", step, "--run-id", "bench")
        place.tidemark("generate", "--events", "50000", "--seed", "4")
        _settle(place)
        rows = measure(place, repeats, WARMING)
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
    asked = {name: timed(place, query.format(day=day), repeats, warming) for name, query in QUERIES.items()}
    views = {view["view"]: view for view in json.loads(place.tidemark("views", "--format", "json"))}
    published = views["orders_by_day"]
    for name, ask in ASKED.items():
        asked[f"{name}, read server"] = by_the_read_server(place, ask, day, repeats, warming)
    asked["point by Polars"] = [_polars(place, day, published, orders) for _ in range(repeats)]
    floor = float(np.median(asked["select 1"]))  # over Thrift
    return [
        {
            "query": name,
            "p50": float(np.median(seconds)),
            "p95": float(np.percentile(seconds, 95)),
            "of_floor": float(np.median(seconds)) / floor,
        }
        for name, seconds in asked.items()
    ]


def timed(place: Platform, query: str, repeats: int, warming: int) -> list[float]:
    """Seconds of each of `repeats` queries over one connection, after `warming` others."""
    from pyhive import hive

    seconds = []
    with hive.connect(**thrift_login(place.settings)) as connection:
        cursor = connection.cursor()
        for _ in range(warming + repeats):
            begun = time.perf_counter()
            cursor.execute(query)
            cursor.fetchall()
            seconds.append(time.perf_counter() - begun)
    return seconds[warming:]


def _statement(query: str, door: Door, day: date) -> Rows:
    return door.sql(query.format(day=day))


ASKED: dict[str, Callable[[Door, date], Rows]] = {
    **{name: partial(_statement, query) for name, query in AT_THE_READ_SERVER.items()},
    "key": lambda door, day: door.key("orders_by_day", store_id=3, day=day),
}


def by_the_read_server(
    place: Platform, ask: Callable[[Door, date], Rows], day: date, repeats: int, warming: int
) -> list[float]:
    """The same of the read server; both of its workers have answered before the first that counts."""
    seconds = []
    own = place.settings
    with connect(own.query_url, own.query_user, own.password("query")) as door:
        for _ in range(warming + repeats):
            begun = time.perf_counter()
            ask(door, day)
            seconds.append(time.perf_counter() - begun)
    return seconds[warming:]


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
