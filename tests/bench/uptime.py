"""UPTIME: hours of a whole platform at a steady rate, with a nightly run every ten minutes; what it costs over time.

generator -> Kafka -> speed layer -> tables; every ten minutes, or as soon as the last one and its marts are done, a run
of `batch_layer` by Airflow, and before the next a reading (point query, micro-batch and its steps, files, memory of
each part), beside nothing but the stream. A row per figure: the first and the last quarter.
A night is ten minutes, so what a platform measures in nights is as many here: the horizon and how late events come.
"""

import json
import statistics
import subprocess
import time
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from deltalake import DeltaTable
from prometheus_client.parser import text_string_to_metric_families

from spark_jobs.settings import ROOT
from spark_jobs.storage import tables
from tests.bench.doors import DOORS
from tests.bench.serve import BUSIEST, QUERIES, timed
from tests.bench.stand import Stand, lag, stand
from tests.platform import Platform, await_true

EVERY, READING = 600, 90
"""Seconds from one batch run to the next, the last of them for a reading."""
HORIZON, LATEST = 7, 2
"""Of sequence views, and of the generator's events, in nights; by default they are days."""
NIGHTLY = ("batch_layer", "marts")
"""What a reading waits for: its length grows with the history, and would colour what does not."""
REPEATS, WARMING = 15, 5
HOT = (tables.MASTER_LOG, tables.SPEED_PARTIALS)
AIRFLOW = ("airflow-api", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer")
PARTS = {"speed": ("speed",), "thrift": ("thrift",), "broker": ("broker",), "metastore": ("metastore",)}
PARTS |= {"airflow": AIRFLOW}
"""What is measured together -> the programs of the supervisor."""
ENDED = ("success", "failed")
MIB = 2**20
Row = dict[str, Any]
Reading = dict[str, float]


def uptime(minutes: int, rate: int, say: Callable[[str], None]) -> list[Row]:
    """A row per figure: the mean of the first and of the last quarter of its readings, and the greatest."""
    readings: dict[str, list[float]] = defaultdict(list)
    night = EVERY / 86_400
    with stand(horizon_days=HORIZON * night) as place:
        command = [ROOT / "tidemark", "generate", "--rate", str(rate), "--seed", "5"]
        command += ["--late-max-days", str(LATEST * night)]
        with subprocess.Popen(command, env=place.environment, stdout=subprocess.DEVNULL) as generator:
            try:
                for reading in _rounds(place, minutes * 60, say):
                    for name, number in reading.items():
                        readings[name].append(number)
            finally:
                generator.terminate()
        await_true(lambda: lag(place) == 0, 600, "the speed layer does not catch up")
        place.tidemark("verify")
    return [_row(name, numbers) for name, numbers in readings.items()]


def _row(name: str, readings: list[float]) -> Row:
    quarter = max(len(readings) // 4, 1)
    first, last = statistics.mean(readings[:quarter]), statistics.mean(readings[-quarter:])
    return {"figure": name, "readings": len(readings), "first": first, "last": last, "most": max(readings)}


def _rounds(place: Stand, seconds: int, say: Callable[[str], None]) -> Iterator[Reading]:
    """A reading at the end of each round for so long after the first, in which everything is new and cold."""
    counted: dict[str, float] = {}
    until = float("inf")
    for number in count():
        began = time.monotonic()
        run = place.airflow("/dags/batch_layer/dagRuns", {"logical_date": None})["dag_run_id"]
        took = await_true(lambda run=run: _state(place, run) in ENDED, 3_000, f"{run} does not end", every=2)
        assert _state(place, run) == "success", place.why_failed("batch_layer", run)
        time.sleep(max(EVERY - READING - (time.monotonic() - began), 0))
        await_true(lambda: not _at_work(place), 3_600, "the marts do not end", every=2)
        reading_began, asked = _counted(place), _queries(place)
        before, counted = counted, _counted(place)
        alone = {f"{name} in readings": value for name, value in _steps(reading_began, counted).items()}
        reading = {"batch run, s": took} | asked | _steps(before, counted) | alone | _sizes(place)
        say(f"{number}: {json.dumps({name: round(value, 2) for name, value in reading.items()})}")
        time.sleep(max(EVERY - (time.monotonic() - began), 0))
        if number:
            yield reading
        else:
            until = time.monotonic() + seconds
        if time.monotonic() >= until:
            return


def _at_work(place: Platform) -> int:
    """Runs of the nightly DAGs that have not ended."""
    states = "&".join(f"state={state}" for state in ("queued", "running"))
    return sum(int(place.airflow(f"/dags/{dag}/dagRuns?limit=1&{states}")["total_entries"]) for dag in NIGHTLY)


def _state(place: Platform, run: str) -> str:
    return str(place.airflow(f"/dags/batch_layer/dagRuns/{run}")["state"])


def _queries(place: Platform) -> Reading:
    """Beside the stream; `select 1` is what the machine allows at the time."""
    [(day, _)] = place.sql(BUSIEST)
    return {
        f"{name}, {door}, ms": 1000 * float(np.median(timed(place, door, query.format(day=day), REPEATS, WARMING)))
        for door in DOORS
        for name, query in QUERIES.items()
        if name in ("select 1", "point")
    }


def _counted(place: Platform) -> dict[str, float]:
    """The speed application's metrics, and its CPU seconds."""
    with urllib.request.urlopen(f"http://{place.settings.host}:{place.settings.metrics_port}/metrics") as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = [one for family in families for one in family.samples]
    numbers = {"/".join((one.name, *one.labels.values())): one.value for one in samples}
    times = [process.cpu_times() for process in place.processes("speed")]
    return numbers | {"cpu": sum(one.user + one.system for one in times)}


def _steps(before: dict[str, float], now: dict[str, float]) -> Reading:
    """Per micro-batch."""
    grown = {name: value - before.get(name, 0.0) for name, value in now.items()}
    batches = grown["tidemark_micro_batches_total"]
    prefix = "tidemark_micro_batch_seconds_total/"
    steps = {f"{name.removeprefix(prefix)}, ms": value for name, value in grown.items() if name.startswith(prefix)}
    records = sum(value for name, value in grown.items() if name.startswith("tidemark_records_total/"))
    return {name: 1000 * value / batches for name, value in steps.items()} | {
        "micro-batches": batches,
        "records": records,
        "CPU of the speed application per micro-batch, ms": 1000 * grown["cpu"] / batches,
    }


def _sizes(place: Platform) -> Reading:
    found: Reading = {}
    for table in HOT:
        root = Path(place.delta(table))
        found[f"files of {table}"] = len(DeltaTable(root).file_uris())
        found[f"_delta_log of {table}"] = len(list((root / "_delta_log").iterdir()))
    for part, programs in PARTS.items():
        processes = (process for program in programs for process in place.processes(program))
        found[f"memory of {part}, MiB"] = sum(map(_resident, processes)) / MIB
    failed = place.airflow("/dags/~/dagRuns?state=failed&limit=1")
    found["failed runs of any DAG"] = failed["total_entries"]
    home = place.settings.home
    found["ledger, MiB"] = (home / "ledger.db").stat().st_size / MIB
    found["Airflow's database, MiB"] = sum(one.stat().st_size for one in place.settings.airflow_dir.glob("*.db")) / MIB
    return found


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0
