"""The peer of DRAIN that a user would choose instead: Flink, with Paimon tables or with tables that keep nothing.

SQL -> a job of Flink in an environment of its own (`.venv-flink`, `.jars-flink`, made when first asked for) -> answers

A streaming job with checkpoints, as it would run day and night, for Paimon commits at checkpoints; only its reading is
bounded, by the offsets that are there when it begins, so that it ends. An embedded cluster: one JVM, like Spark's here.
"""

import json
import os
from pathlib import Path
from typing import Any

from infra import jars
from infra.setup import Environment, build, find_uv
from spark_jobs.settings import ROOT
from spark_jobs.storage.java import java_home
from tests.bench.checked import check
from tests.bench.cpu import Span
from tests.bench.flink import sql
from tests.bench.flink.sql import Kept
from tests.bench.stand import Stand

ENVIRONMENT = Environment(
    "Flink environment", ROOT / ".venv-flink", ROOT / "infra/locks/flink.txt", installs_project=False
)
JARS = jars.sets()["flink"]
HEAP_MB = 4096

# What Flink's and Paimon's pages on tuning say: mini-batches in two phases, no copies between operators, checkpoints
# that may overlap, compaction beside the writing. State is on the heap, Flink's default; RocksDB took as long.
SETTINGS = {
    "execution.checkpointing.interval": "10 s",
    "execution.checkpointing.max-concurrent-checkpoints": "3",
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "5 s",
    "table.exec.mini-batch.size": "50000",
    "table.local-time-zone": "UTC",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
    "taskmanager.memory.managed.size": "512m",
    "taskmanager.memory.network.max": "512m",
    "taskmanager.memory.network.min": "512m",
    "taskmanager.numberOfTaskSlots": "2",
}
# With two writers Paimon lost rows: those of a table end one after the other in a bounded stream, and what the later
# one commits may be missing (apache/paimon issue 9236 is akin). One was also cheaper: some forty operators keep two
# cores busy even so, and a million events took 44 to 47 s of CPU time, with two of each 53 s.
SETTINGS_OF_PAIMON = {"parallelism.default": "1", "taskmanager.numberOfTaskSlots": "1"}
PAIMON = {
    "bucket": "1",
    "write-buffer-size": "64mb",
    "num-sorted-run.stop-trigger": "2147483647",
    "sort-spill-threshold": "10",
}


def made() -> str | None:
    """Make Flink's environment as locked; why it cannot be, or None."""
    try:
        if not ENVIRONMENT.built():
            build(find_uv(), ENVIRONMENT)
        jars.sync(JARS)
    except (SystemExit, jars.JarError) as error:
        return str(error).splitlines()[0]
    return None


def flink(views: dict[str, Kept], place: Stand) -> Span:
    """Everything landed, and the views, in Paimon; the answers are right."""
    folder = place.settings.home / f"flink-{os.urandom(4).hex()}"
    catalog = f"CREATE CATALOG paimon WITH ('type' = 'paimon', 'warehouse' = '{(folder / 'warehouse').as_uri()}')"
    tables = [kept.created(f"{sql.PAIMON}.{name}", {}) for name, kept in sql.landed().items()]
    tables += [kept.created(f"{sql.PAIMON}.{name}", PAIMON if kept.keys else {}) for name, kept in views.items()]
    plan = _plan(place, folder, sql.PAIMON, views, [catalog, *tables])
    answers = sql.answers(views)
    plan["settings"] |= SETTINGS_OF_PAIMON
    plan |= {
        "answer_tables": [catalog, *(a.created(f"answer_{name}", folder / name) for name, a in answers.items())],
        "answers": [f"INSERT INTO answer_{name} {answer.query}" for name, answer in answers.items()],
    }
    span = _run(place, folder, plan)
    check("Flink", place.settings.producer_ledger, {name: a.rows(folder / name) for name, a in answers.items()})
    return span


def flink_nothing(views: dict[str, Kept], place: Stand) -> Span:
    """The same into nothing."""
    folder = place.settings.home / f"flink-{os.urandom(4).hex()}"
    here, every = "default_catalog.default_database", sql.landed() | views
    tables = [kept.created(f"{here}.{name}", {"connector": "blackhole"}) for name, kept in every.items()]
    return _run(place, folder, _plan(place, folder, here, views, tables))


def _plan(place: Stand, folder: Path, where: str, views: dict[str, Kept], tables: list[str]) -> dict[str, Any]:
    sources = [sql.source(event_type, place.settings.kafka) for event_type in sql.READ]
    return {
        "settings": SETTINGS | {"execution.checkpointing.dir": (folder / "checkpoints").as_uri()},
        "tables": [*sources, *tables],
        "inserts": [f"INSERT INTO {where}.{name} {kept.query}" for name, kept in (sql.landed() | views).items()],
        "answers": [],
        "span": str(folder / "span.json"),
    }


def _run(place: Stand, folder: Path, plan: dict[str, Any]) -> Span:
    folder.mkdir()
    file = folder / "plan.json"
    file.write_text(json.dumps(plan))
    own = {
        "FLINK_LOG_DIR": str(folder),
        "HADOOP_CLASSPATH": os.pathsep.join(str(jar) for jar in sorted(JARS.target.glob("*/*.jar"))),
        "JAVA_HOME": str(java_home()),
        "JVM_ARGS": f"-Xmx{HEAP_MB}m",
    }
    python = str(ENVIRONMENT.folder / "bin/python")
    return place.measured([python, str(Path(__file__).with_name("job.py")), str(file)], folder / "span.json", own)
