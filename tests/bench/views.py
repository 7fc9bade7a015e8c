"""VIEWS: what views cost. The same backlog and the same small micro-batches with 1, 5, 15, 30 and all views.

A broker with a backlog -> for each number of views a fresh speed application -> seconds to drain, milliseconds of a
micro-batch of 2,000 records. A run counts only where every view equals the oracle.
"""

import shutil
import statistics
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.registry.views import project_views
from spark_jobs.settings import ROOT
from tests.bench.drain import moments
from tests.bench.stand import Stand, lag, stand
from tests.platform import await_true

SMALL, TIMES = 2_000, 12
TRIGGER_MS = 3_000
"""So that all records that were sent together are one micro-batch; one of a backlog takes longer in any case."""

# The first are those of DRAIN's prototype, of five kinds; then by name.
FIRST = ("orders_by_day", "orders_by_hour", "word_count", "sessions", "trades")
Row = dict[str, object]


def views(events: int, counts: tuple[int, ...], say: Callable[[str], None]) -> list[Row]:
    """A row per number of views; those over other views cost the speed layer nothing, and are left out."""
    rows: list[Row] = []
    with stand("broker", "metastore") as place:
        place.tidemark("generate", "--events", str(events), "--seed", "1")
        say(f"{events:,} events are in Kafka")
        for count in counts:
            found = _with(place, count)
            rows.append(found)
            say("  ".join(f"{name} {value:,.1f}" for name, value in found.items() if isinstance(value, int | float)))
    return rows


def _with(place: Stand, count: int) -> Row:
    folder = place.settings.home / f"views-{count}"
    chosen = _chosen(count)
    folder.mkdir()
    for view_id in chosen:
        shutil.copy(ROOT / "spark_jobs/views" / f"{view_id}.py", folder)
    own = {"kafka_servers": place.settings.kafka, "views_folder": folder, "trigger_ms": TRIGGER_MS}
    with stand("metastore", "thrift", **own) as fresh:
        (fresh.settings.home / "producer").symlink_to(place.settings.producer_ledger)
        fresh.tidemark("up", "speed")
        await_true(lambda: lag(fresh) == 0, 1800, "the backlog does not drain")
        (began_at, ended_at), drained = moments(fresh), sum(one["records"] for one in _batches(fresh))
        for seed in range(TIMES):
            fresh.tidemark("generate", "--events", str(SMALL), "--seed", f"{count}{seed:02d}")
            await_true(lambda: lag(fresh) == 0, 120, "the micro-batch does not end")
        small = _small(fresh)
        fresh.tidemark("verify", "--all", timeout=1800)
    seconds = ended_at - began_at
    return {"views": len(chosen), "seconds": seconds, "records_per_second": drained / seconds, "small_ms": small}


def _chosen(count: int) -> list[str]:
    """Views by id; what one looks up comes with it."""
    every = sorted((view.id for view in project_views()), key=lambda one: (one not in FIRST, one))
    chosen = dict.fromkeys(every[:count])
    for view in project_views():
        if view.id in chosen and isinstance(view, AggregateView):
            chosen |= dict.fromkeys(lookup.view for lookup in view.lookups.values())
    return list(chosen)


def _small(place: Stand) -> float:
    """The median of the micro-batches with about the small number of records, from their start to their end."""
    spans = [one["finished_at"] - one["started_at"] for one in _batches(place) if 0.75 <= one["records"] / SMALL <= 1]
    assert spans, "no micro-batch had all of the records"
    return statistics.median(span.total_seconds() for span in spans) * 1000


def _batches(place: Stand) -> list[dict[str, Any]]:
    """The control rows of the micro-batches."""
    rows = DeltaTable(place.delta("speed.partials")).to_pyarrow_dataset()
    control = rows.to_table(columns=["control"], filter=pc.field("view") == "__batch__")["control"]
    return list(control.to_pylist())
