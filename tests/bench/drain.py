"""DRAIN: how fast a backlog leaves Kafka, and becomes answers.

limit = Kafka -> noop; naive = one Structured Streaming query per view; ours = everything, all views on, proven equal to
the oracle afterwards. Peers run by turns, each alone, from the start of its query to its end.
"""

import json
from collections.abc import Callable

import duckdb
import pyarrow.compute as pc
from deltalake import DeltaTable

from tests.bench.stand import Stand, lag, stand
from tests.platform import await_true

Row = dict[str, object]


def drain(events: int, rounds: int, say: Callable[[str], None]) -> list[Row]:
    """A row per peer and round: seconds, records a second, share of the limit in the same round."""
    with stand("broker", "metastore") as place:
        place.tidemark("generate", "--events", str(events), "--seed", "1")
        say(f"{events:,} events are in Kafka")
        rows: list[Row] = []
        for number in range(rounds):
            seconds = {"limit": _peer(place, "limit"), "naive": _peer(place, "naive"), "ours": _ours(place)}
            rows += [_row(number, peer, events, spent, seconds["limit"]) for peer, spent in seconds.items()]
            say("  ".join(f"{peer} {events / spent:,.0f}/s" for peer, spent in seconds.items()))
    return rows


def _row(number: int, peer: str, events: int, seconds: float, limit: float) -> Row:
    rate = events / seconds
    return {"round": number, "peer": peer, "seconds": seconds, "records_per_second": rate, "of_limit": limit / seconds}


def _peer(place: Stand, peer: str) -> float:
    answer = place.settings.home / "seconds.json"
    place.python("tests.bench.peers", peer, str(answer))
    return float(json.loads(answer.read_text())["seconds"])


def _ours(place: Stand) -> float:
    """The speed application of a fresh platform on the same broker, until nothing is left; then the oracle."""
    with stand("metastore", "thrift", kafka_servers=place.settings.kafka) as fresh:
        (fresh.settings.home / "producer").symlink_to(place.settings.producer_ledger)
        fresh.tidemark("up", "speed")
        await_true(lambda: lag(fresh) == 0, 1800, "the backlog does not drain")
        seconds = spent(fresh)
        fresh.tidemark("verify", timeout=1800)
    return seconds


def spent(place: Stand) -> float:
    """From the first micro-batch's start to the last one's end, as their control rows tell."""
    rows = DeltaTable(place.delta("speed.partials")).to_pyarrow_dataset()
    control = rows.to_table(columns=["control"], filter=pc.field("view") == "__batch__")
    [(first, last)] = duckdb.sql(
        "SELECT epoch_us(min(control.started_at)), epoch_us(max(control.finished_at)) FROM control"
    ).fetchall()
    assert control.num_rows
    return float(last - first) / 1e6
