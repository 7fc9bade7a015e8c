"""DRAIN: how fast a backlog leaves Kafka, and becomes answers.

limit = Kafka -> noop; naive = one Structured Streaming query per view, six; flink = all landed and the same views, as
tables of Paimon; flink_nothing = the same into nothing; flink_fifteen = fifteen views, as tables of Paimon; pathway =
the six as CSV files of changes; ours_same and ours_fifteen = ours with just these views; ours = everything, all views
on. Each of ours equals the oracle afterwards. Peers run by turns, each alone, from the start of its query to its end.

Each takes the first FIRST records in a turn of their own before, then all of them: what the later ones take is the
difference, in which no start and no code that is not compiled yet have a part.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.settings import ROOT
from tests.bench.cpu import Meter, Span
from tests.bench.flink import peer as flink
from tests.bench.flink.views import fifteen, six
from tests.bench.pathway import peer as pathway
from tests.bench.stand import Stand, lag, stand
from tests.platform import await_true

Row = dict[str, object]
Peer = Callable[[Stand], Span]
FIRST = 1_000_000


def drain(events: int, rounds: int, say: Callable[[str], None]) -> list[Row]:
    """A row per peer and round: seconds, records a second, share of the limit in the same round, CPU seconds."""
    if events <= FIRST:
        raise ValueError(f"--events: DRAIN needs more than the {FIRST:,} records that it takes apart")
    every = peers(say)
    with stand("broker", "metastore") as place:
        place.tidemark("generate", "--events", str(FIRST), "--seed", "1")
        first = _turn(every, place, FIRST, say)
        place.tidemark("generate", "--events", str(events - FIRST), "--seed", "2")
        rows: list[Row] = []
        for number in range(rounds):
            spans = _turn(every, place, events, say)
            rows += [_row(number, name, events, spans, first) for name in every]
    return rows


def _turn(peers: Mapping[str, Peer], place: Stand, events: int, say: Callable[[str], None]) -> dict[str, Span]:
    spans = {name: peer(place) for name, peer in peers.items()}
    say(f"{events:,}: " + "  ".join(f"{name} {events / span.seconds:,.0f}/s" for name, span in spans.items()))
    return spans


def peers(say: Callable[[str], None]) -> dict[str, Peer]:
    """All that can run here, in their order."""
    found: dict[str, Peer] = {"limit": partial(_spark, "limit"), "naive": partial(_spark, "naive")}
    if lacking := flink.made():
        say(f"without Flink: {lacking}")
    else:
        found |= {
            "flink": partial(flink.flink, six()),
            "flink_nothing": partial(flink.flink_nothing, six()),
            "flink_fifteen": partial(flink.flink, fifteen()),
        }
    if lacking := pathway.made():
        say(f"without Pathway: {lacking}")
    else:
        found |= {"pathway": pathway.pathway}
    same = {"ours_same": partial(_ours_with, six()), "ours_fifteen": partial(_ours_with, fifteen())}
    return found | same | {"ours": _ours}


def _row(number: int, peer: str, events: int, spans: Mapping[str, Span], first: Mapping[str, Span]) -> Row:
    span, before, later = spans[peer], first[peer], events - FIRST
    longer = span.seconds - before.seconds
    return {
        "round": number,
        "peer": peer,
        "seconds": span.seconds,
        "records_per_second": events / span.seconds,
        "of_limit": spans["limit"].seconds / span.seconds,
        "cpu_seconds": span.cpu_seconds,
        "first_per_second": FIRST / before.seconds,
        "first_cpu_seconds": before.cpu_seconds,
        "later_per_second": later / longer if longer > 0 else None,
        "later_cpu_seconds_per_million": (span.cpu_seconds - before.cpu_seconds) / later * 1e6,
    }


def _spark(peer: str, place: Stand) -> Span:
    said = place.settings.home / "span.json"
    return place.measured([sys.executable, "-m", "tests.bench.peers", peer, str(said)], said)


def _ours_with(views: Iterable[str], place: Stand) -> Span:
    with tempfile.TemporaryDirectory() as folder:
        for name in views:
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
