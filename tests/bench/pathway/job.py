"""One run of Pathway, in an environment of its own: `.venv-pathway/bin/python job.py PLAN-FILE`.

plan (JSON: servers, fields, folder, span) -> a graph that reads the topics for ever -> CSV files of changes

It ends when nothing has changed for QUIET_SECONDS: in its bounded mode Pathway computes each answer once, at the end.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pathway as pw

TYPES = {"int64": int, "double": float, "bool": bool}
COMMIT_MS = 5000
"""As long as Flink's mini-batches may wait."""
BACKLOG = 20_000
QUIET_SECONDS = 30


@dataclass
class Watch:
    """When something changed last, in seconds since the epoch, and the topics of which nothing has come yet."""

    silent: set[str]
    began_at: float = field(default_factory=time.time)
    ended_at: float = 0.0

    def changed(self, topic: str) -> Callable[..., None]:
        def note(**_: Any) -> None:
            self.silent.discard(topic)
            self.ended_at = time.time()

        return note

    def end_when_quiet(self, span: Path) -> None:
        while self.silent or time.time() - self.ended_at < QUIET_SECONDS:
            time.sleep(0.5)
        span.write_text(json.dumps({"began_at": self.began_at, "ended_at": self.ended_at}))
        os._exit(0)  # a graceful end has the exit code of the signal


def read(topic: str, fields: dict[str, str], servers: str) -> Any:
    """The topic from its first record on; what a record lacks is None. Tombstones, which lack all, are left out."""
    columns = {
        name: pw.column_definition(dtype=TYPES.get(kind, str) | None, default_value=None)
        for name, kind in fields.items()
    }
    table = pw.io.kafka.read(
        {"bootstrap.servers": servers, "group.id": f"{topic}-{os.getpid()}", "auto.offset.reset": "earliest"},
        topic,
        schema=pw.schema_builder(columns),
        format="json",
        autocommit_duration_ms=COMMIT_MS,
        max_backlog_size=BACKLOG,
    )
    return table.filter(table.event_id.is_not_none())


def having(table: Any, *columns: str) -> Any:
    """The rows that have all of these, with `at`, `day` and `hour` where the time of the event is among them."""
    for column in columns:
        table = table.filter(table[column].is_not_none())
    table = table.with_columns(**{column: pw.unwrap(table[column]) for column in columns})
    if "occurred_at" not in columns:
        return table
    table = table.with_columns(at=table.occurred_at.dt.strptime("%Y-%m-%dT%H:%M:%S.%fZ"))
    return table.with_columns(day=table.at.dt.floor("1d"), hour=table.at.dt.floor("1h"))


def views(tables: dict[str, Any]) -> dict[str, Any]:
    """The aggregates of tests/bench/peers.py."""
    orders = having(tables["order_placed"], "store_id", "occurred_at")
    pages = having(tables["page_viewed"], "user_id", "occurred_at")
    buses = having(tables["bus_position_reported"], "bus_id", "occurred_at")
    coloured = having(tables["order_placed"], "colour")
    sentences = having(tables["sentence_posted"], "text")
    words = sentences.select(word=pw.apply_with_type(split, list[str], pw.this.text)).flatten(pw.this.word)
    revenue = pw.reducers.sum(pw.coalesce(orders.quantity, 0) * pw.coalesce(orders.unit_price_cents, 0))
    count, buyers = pw.reducers.count(), pw.reducers.count_distinct(orders.user_id)
    newest = buses.groupby(buses.bus_id).reduce(newest=pw.reducers.argmax(buses.at))
    return {
        "orders_by_day": orders.groupby(orders.store_id, orders.day).reduce(
            orders.store_id, orders.day, orders=count, revenue_cents=revenue
        ),
        "orders_by_hour": orders.groupby(orders.store_id, orders.hour).reduce(
            orders.store_id, orders.hour, orders=count, revenue_cents=revenue, buyers=buyers
        ),
        "orders_by_colour": coloured.groupby(coloured.colour).reduce(
            coloured.colour, orders=count, mean_price=pw.reducers.avg(pw.coalesce(coloured.unit_price_cents, 0))
        ),
        "page_views_per_user_hour": pages.groupby(pages.user_id, pages.hour).reduce(
            pages.user_id, pages.hour, page_views=count
        ),
        "word_count": words.groupby(words.word).reduce(words.word, n=count),
        "bus_latest": newest.select(
            *(buses.ix(newest.newest)[column] for column in ("bus_id", "at", "line", "lat", "lon"))
        ),
    }


def split(text: str) -> list[str]:
    return [word for word in re.split("[^a-z0-9]+", text.lower()) if word]


def main(plan_file: str) -> None:
    plan = json.loads(Path(plan_file).read_text())
    watch = Watch(set(plan["fields"]))
    tables = {topic: read(topic, fields, plan["servers"]) for topic, fields in plan["fields"].items()}
    kept = {f"landed_{topic}": table for topic, table in tables.items()} | views(tables)
    for name, table in kept.items():
        pw.io.csv.write(table, f"{plan['folder']}/{name}.csv")
    for topic, table in tables.items():
        pw.io.subscribe(table.reduce(n=pw.reducers.count()), watch.changed(topic))
    threading.Thread(target=watch.end_when_quiet, args=[Path(plan["span"])], daemon=True).start()
    pw.run(terminate_on_error=False, monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main(*sys.argv[1:])
