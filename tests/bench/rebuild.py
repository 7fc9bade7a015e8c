"""REBUILD: what a nightly run costs, beside one DuckDB that makes the same tables from the same facts.

a history of many days -> Kafka -> the speed layer -> three runs of plan, build, audit, publish: `first` decodes the
history, `full` builds all views from its facts again, `changed` is after 1 % more events, some late by days.
A run counts only where every batch table equals the peer's.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from subprocess import PIPE, Popen
from tempfile import NamedTemporaryFile

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
    """A row per size and run: seconds, CPU seconds, memory, what was written, what the driver got, and the peer's.

    decode: seconds until the facts are there, with the start of the JVM; build: those after it.
    """
    rows: list[Row] = []
    for events in sizes:
        with stand("broker", "metastore", "thrift") as place:
            for row in _measured(place, events, say):
                rows.append(row)
                say("  ".join(f"{n} {v:,.1f}" for n, v in row.items() if isinstance(v, int | float)))
    return rows


def _measured(place: Stand, events: int, say: Callable[[str], None]) -> Iterator[Row]:
    for number, (mode, count) in enumerate((("first", events), ("full", 0), ("changed", events // 100))):
        if count:
            _feed(place, count, seed=number + 1)
            say(f"{count:,} events are landed")
        run = ["--run-id", f"bench{number}"]
        place.tidemark("batch", "plan", *run, "--mode", "full" if mode == "full" else "changed")
        before = _stored(place)
        build, audit = _step(place, "build", *run), _step(place, "audit", *run)
        place.tidemark("batch", "publish", *run, timeout=1800)
        written = (_stored(place) - before) / 1e6
        peer = _peer(place)
        yield {
            "events": events,
            "mode": mode,
            "decode": build.decode,
            "build": build.span.seconds - build.decode,
            "build_cpu": build.span.cpu_seconds,
            "audit": audit.span.seconds,
            "audit_cpu": audit.span.cpu_seconds,
            "duckdb": peer.seconds,
            "duckdb_cpu": peer.cpu_seconds,
            "of_duckdb": (build.span.seconds - build.decode) / peer.seconds,
            "mb_written": written,
            "build_mb": build.span.mb,
            "worker_mb": build.span.worker_mb,
            "audit_mb": audit.span.mb,
            "build_rows": build.rows,
            "audit_rows": audit.rows,
        }


@dataclass(frozen=True)
class Step:
    """A step of a run. decode: its seconds until the facts are there; rows: those that its driver got."""

    span: Span
    decode: float
    rows: int


def _feed(place: Stand, events: int, seed: int) -> None:
    rate = str(A_DAY / 86_400)
    place.tidemark("generate", "--events", str(events), "--seed", str(seed), "--rate", rate, timeout=3600)
    place.tidemark("up", "speed")
    await_true(lambda: lag(place) == 0, 3600, "the backlog does not drain")


def _step(place: Stand, step: str, *arguments: str) -> Step:
    file = place.settings.home / f"{step}.json"
    span, said = _timed(place, [sys.executable, "-m", "tests.bench.step", str(file), "batch", step, *arguments])
    decode = next((at for at, line in said if line.startswith("decoded ")), 0.0)
    return Step(span, decode, json.loads(file.read_text())["rows"])


def _timed(place: Stand, command: list[str]) -> tuple[Span, list[tuple[float, str]]]:
    """A command, from its start to its end, and when it said what, in seconds since its start."""
    marked, said = place.environment | {leftovers.MARK: PEER}, list[tuple[float, str]]()
    with Meter(lambda: place.processes(PEER)) as meter, NamedTemporaryFile("w+") as errors:
        began = time.time()
        with Popen(command, env=marked, cwd=ROOT, stdout=PIPE, stderr=errors, text=True) as process:
            assert process.stdout is not None
            said += ((time.time() - began, line) for line in process.stdout)
        ended = time.time()
        errors.seek(0)
        last = "".join(line for _, line in said)[-2000:] + errors.read()[-2000:]
    assert process.returncode == 0, f"{' '.join(command)}: {last}"
    return meter.span(began, ended), said


def _peer(place: Stand) -> Span:
    """One DuckDB process that makes the same tables from the same facts; they must be equal."""
    folder = place.settings.home / "peer"
    shutil.rmtree(folder, ignore_errors=True)
    span, _ = _timed(place, [sys.executable, "-m", "tests.bench.rebuild_peer", str(folder)])
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
