"""REBUILD: what a nightly run costs, in full and for 1 % new events, beside one DuckDB that makes the same tables.

a history of many days -> Kafka -> the speed layer -> plan, build, audit, publish; then 1 % more, some late by days, and
the next run. A run counts only where every batch table equals the peer's.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from infra.embedded import leftovers
from spark_jobs.settings import ROOT
from tests.bench.cpu import Meter, Span
from tests.bench.stand import PEER, Stand, lag, stand
from tests.platform import await_true

A_DAY = 100_000
"""Events of a day: a larger history is longer, and not denser."""
Row = dict[str, object]


def rebuild(sizes: tuple[int, ...], say: Callable[[str], None]) -> list[Row]:
    """A row per size and run: seconds and CPU seconds of build and audit, what was written, and the peer's seconds."""
    rows: list[Row] = []
    for events in sizes:
        with stand("broker", "metastore", "thrift") as place:
            for row in _measured(place, events, say):
                rows.append(row)
                say("  ".join(f"{n} {v:,.1f}" for n, v in row.items() if isinstance(v, int | float)))
    return rows


def _measured(place: Stand, events: int, say: Callable[[str], None]) -> Iterator[Row]:
    for number, (mode, count) in enumerate((("full", events), ("changed", events // 100))):
        _feed(place, count, seed=number + 1)
        say(f"{count:,} events are landed")
        run = ["--run-id", f"bench{number}"]
        place.tidemark("batch", "plan", *run)
        before = _stored(place)
        build, audit = (_step(place, step, *run) for step in ("build", "audit"))
        place.tidemark("batch", "publish", *run, timeout=1800)
        row: Row = {"events": events, "mode": mode, "build": build.seconds, "build_cpu": build.cpu_seconds}
        say(f"build {build.seconds:.1f} s, {build.cpu_seconds:.1f} s of CPU; audit {audit.seconds:.1f} s")
        row |= {"audit": audit.seconds, "audit_cpu": audit.cpu_seconds, "mb_written": (_stored(place) - before) / 1e6}
        peer = _peer(place)
        yield row | {"duckdb": peer.seconds, "duckdb_cpu": peer.cpu_seconds, "of_duckdb": build.seconds / peer.seconds}


def _feed(place: Stand, events: int, seed: int) -> None:
    rate = str(A_DAY / 86_400)
    place.tidemark("generate", "--events", str(events), "--seed", str(seed), "--rate", rate, timeout=3600)
    place.tidemark("up", "speed")
    await_true(lambda: lag(place) == 0, 3600, "the backlog does not drain")


def _step(place: Stand, step: str, *arguments: str) -> Span:
    return _timed(place, [str(ROOT / "tidemark"), "batch", step, *arguments])


def _timed(place: Stand, command: list[str]) -> Span:
    """A command, from its start to its end."""
    marked = place.environment | {leftovers.MARK: PEER}
    with Meter(lambda: place.processes(PEER)) as meter:
        began = time.time()
        done = subprocess.run(command, env=marked, cwd=ROOT, capture_output=True, text=True, check=False)
        ended = time.time()
    assert done.returncode == 0, f"{' '.join(command)}: {(done.stdout + done.stderr)[-4000:]}"
    return meter.span(began, ended)


def _peer(place: Stand) -> Span:
    """One DuckDB process that makes the same tables from the same facts; they must be equal."""
    folder = place.settings.home / "peer"
    shutil.rmtree(folder, ignore_errors=True)
    span = _timed(place, [sys.executable, "-m", "tests.bench.rebuild_peer", str(folder)])
    with duckdb.connect(config={"temp_directory": str(folder / "spilled")}) as con:
        for file in sorted(folder.glob("*.parquet")):
            table = DeltaTable(place.delta(f"batch.{file.stem}")).to_pyarrow_dataset()
            binary = {field.name for field in table.schema if pa.types.is_binary(field.type)}  # sketches: any order
            columns = ", ".join(f'"{name}"' for name in table.schema.names if name not in binary)
            con.register("ours", table)
            con.execute(f"CREATE OR REPLACE TEMP VIEW theirs AS FROM '{file}'")
            sides = [f"SELECT {columns} FROM {side}" for side in ("ours", "theirs")]
            for one, other in (sides, sides[::-1]):
                [(differing,)] = con.execute(f"SELECT count(*) FROM ({one} EXCEPT ALL {other})").fetchall()
                assert not differing, f"{file.stem}: {differing:,} rows of {one} differ"
    return span


def _stored(place: Stand) -> int:
    """Bytes of all files of facts and batch tables, whichever version needs them."""
    folders = [place.settings.home / "warehouse" / name for name in ("facts.db", "batch.db", "master.db")]
    return sum(file.stat().st_size for folder in folders for file in folder.rglob("*.parquet"))
