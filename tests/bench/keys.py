"""KEYS: what it costs to read a sequence view of a million keys while new rows wait past the cut.

page views of many users over a day -> Kafka -> a build of `sessions` -> more of them -> one key, and all by the hour.
What new rows do not touch is read as it was built, so the price is that of the new rows, not of the keys:
tests/spark/test_pruning.py holds the plan to it. A run counts only where every page view is in a session.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from kafka import KafkaProducer

from spark_jobs.orchestration.interface import BATCH_STEPS
from spark_jobs.sample.block import Block, facts
from spark_jobs.sample.producer import Producer
from spark_jobs.sample.sources.draw import instants
from spark_jobs.settings import ROOT
from tests.bench.stand import Stand, lag, stand
from tests.platform import await_true

TOPIC = "page_viewed"
PER_KEY = 5
NEW = (20_000, 200_000)
TIMES, WARMING = 10, 5
BLOCK = 100_000
QUERIES = {
    "one key": "SELECT * FROM serving.sessions WHERE user_id = {key}",
    "count by hour": (
        "SELECT date_trunc('HOUR', started_at) AS hour, count(*), sum(pages) FROM serving.sessions GROUP BY 1"
    ),
}
Row = dict[str, object]


def keys(events: int, say: Callable[[str], None]) -> list[Row]:
    """A row per number of new rows: the median seconds of each query."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(ROOT / "spark_jobs/views/sessions.py", folder)
        with stand("broker", "metastore", "thrift", views_folder=Path(folder)) as place:
            return list(_measured(place, events, say))


def _measured(place: Stand, events: int, say: Callable[[str], None]) -> Iterator[Row]:
    users = events // PER_KEY
    place.tidemark("topics", "create")
    sent = _send(place, users, events, seed=1)
    say(f"{sent:,} page views of {users:,} users are in Kafka")
    place.tidemark("up", "speed")
    await_true(lambda: lag(place) == 0, 1800, "the backlog does not drain")
    for step in BATCH_STEPS:
        place.tidemark("batch", step, "--run-id", "bench", timeout=1800)
    for seed, new in enumerate((0, *NEW)):
        sent += _send(place, users, new, seed=100 + seed)
        _settle(place, sent)
        row: Row = {"keys": users, "rows": events, "new_rows": sent - events}
        for name, query in QUERIES.items():
            row[name] = _seconds(place, query.format(key=users // 2))
        yield row
        say("  ".join(f"{name} {value:,.3f}" for name, value in row.items() if isinstance(value, int | float)))


def _settle(place: Stand, sent: int) -> None:
    """Every page view that was sent is in a session."""
    query = "SELECT coalesce(sum(pages), 0) FROM serving.sessions"
    await_true(lambda: int(place.sql(query)[0][0]) == sent, 600, f"the sessions have not all of {sent:,} pages")


def _seconds(place: Stand, query: str) -> float:
    found = []
    for _ in range(WARMING + TIMES):
        begun = time.perf_counter()
        place.sql(query)
        found.append(time.perf_counter() - begun)
    return statistics.median(found[WARMING:])


def _send(place: Stand, users: int, events: int, seed: int) -> int:
    """Page views of random users over the last day; each has its own id."""
    client = KafkaProducer(bootstrap_servers=place.settings.kafka, acks="all", enable_idempotence=True)
    with Producer(lambda sent: None, client=client) as producer:
        for number in range(0, events, BLOCK):
            producer.send(_block(np.random.default_rng([seed, number]), users, min(BLOCK, events - number)))
    return events


def _block(rng: np.random.Generator, users: int, n: int) -> Block:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    at = int(midnight.timestamp() * 1000) + rng.integers(0, 86_400_000, n)
    who, ids = rng.integers(1, users, n, endpoint=True).tolist(), rng.integers(0, 2**62, (n, 2)).tolist()
    values = [
        f'{{"event_id":"{a >> 30:08x}-{b >> 46:04x}-4000-8000-{b & 0xFFFFFFFFFFFF:012x}","event_type":"page_viewed",'
        f'"occurred_at":"{text}Z","user_id":{user},"url":"/{a % 50}"}}'.encode()
        for (a, b), text, user in zip(ids, instants(at), who, strict=True)
    ]
    return facts(TOPIC, [str(user).encode() for user in who], values)
