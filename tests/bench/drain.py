"""DRAIN: how fast a backlog leaves Kafka, and becomes answers.

limit = Kafka -> noop; naive = one Structured Streaming query per view; flink = all landed and the same views, as tables
of Paimon; flink_nothing = the same into nothing; pathway = the same as CSV files of changes; ours_same = ours with just
these views; ours = everything, all views on. Both of ours equal the oracle afterwards. Peers run by turns, each alone,
from the start of its query to its end.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.settings import ROOT
from tests.bench.cpu import Meter, Span
from tests.bench.flink import peer as flink
from tests.bench.flink import sql
from tests.bench.pathway import peer as pathway
from tests.bench.stand import Stand, lag, stand
from tests.platform import await_true

Row = dict[str, object]


def drain(events: int, rounds: int, say: Callable[[str], None]) -> list[Row]:
    """A row per peer and round: seconds, records a second, share of the limit in the same round, CPU seconds."""
    every = peers(say)
    with stand("broker", "metastore") as place:
        place.tidemark("generate", "--events", str(events), "--seed", "1")
        say(f"{events:,} events are in Kafka")
        rows: list[Row] = []
        for number in range(rounds):
            spans = {name: peer(place) for name, peer in every.items()}
            rows += [_row(number, name, events, span, spans["limit"]) for name, span in spans.items()]
            say("  ".join(f"{name} {events / span.seconds:,.0f}/s" for name, span in spans.items()))
    return rows


def peers(say: Callable[[str], None]) -> dict[str, Callable[[Stand], Span]]:
    """All that can run here, in their order."""
    found: dict[str, Callable[[Stand], Span]] = {"limit": partial(_spark, "limit"), "naive": partial(_spark, "naive")}
    if lacking := flink.made():
        say(f"without Flink: {lacking}")
    else:
        found |= {"flink": flink.flink, "flink_nothing": flink.flink_nothing}
    if lacking := pathway.made():
        say(f"without Pathway: {lacking}")
    else:
        found |= {"pathway": pathway.pathway}
    return found | {"ours_same": _ours_with_the_same_views, "ours": _ours}


def _row(number: int, peer: str, events: int, span: Span, limit: Span) -> Row:
    return {
        "round": number,
        "peer": peer,
        "seconds": span.seconds,
        "records_per_second": events / span.seconds,
        "of_limit": limit.seconds / span.seconds,
        "cpu_seconds": span.cpu_seconds,
    }


def _spark(peer: str, place: Stand) -> Span:
    said = place.settings.home / "span.json"
    return place.measured([sys.executable, "-m", "tests.bench.peers", peer, str(said)], said)


def _ours_with_the_same_views(place: Stand) -> Span:
    with tempfile.TemporaryDirectory() as folder:
        for name in sql.views():
            shutil.copy(ROOT / f"spark_jobs/views/{name}.py", folder)
        return _ours(place, views_folder=Path(folder))


def _ours(place: Stand, **changes: Any) -> Span:
    """The speed application of a fresh platform on the same broker, until nothing is left; then the oracle."""
    with stand("metastore", "thrift", kafka_servers=place.settings.kafka, **changes) as fresh:
        (fresh.settings.home / "producer").symlink_to(place.settings.producer_ledger)
        with Meter(fresh.processes) as meter:
            fresh.tidemark("up", "speed")
            await_true(lambda: lag(fresh) == 0, 1800, "the backlog does not drain")
        span = meter.span(*moments(fresh))
        fresh.tidemark("verify", "--all", timeout=1800)
    return span


def moments(place: Stand) -> tuple[float, float]:
    """The first micro-batch's start and the last one's end, as their control rows tell; seconds since the epoch."""
    rows = DeltaTable(place.delta("speed.partials")).to_pyarrow_dataset()
    control = rows.to_table(columns=["control"], filter=pc.field("view") == "__batch__")
    assert control.num_rows
    [(first, last)] = duckdb.sql(
        "SELECT epoch_us(min(control.started_at)), epoch_us(max(control.finished_at)) FROM control"
    ).fetchall()
    return first / 1e6, last / 1e6
