"""The peer of DRAIN that a Python user would pick: Pathway, which keeps its answers as CSV files of changes.

contracts -> a plan -> a graph in an environment of its own (`.venv-pathway`, made when first asked for) -> answers

It asks for a key, given to people with an account, to write tables of Delta. Its state is not persisted here.
"""

import json
import os
from pathlib import Path

from infra.setup import Environment, build, find_uv
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.settings import ROOT
from tests.bench.checked import check
from tests.bench.cpu import Span
from tests.bench.expected import LANDED, SIX
from tests.bench.flink.sql import LANDED_PREFIX, READ
from tests.bench.stand import Stand

ENVIRONMENT = Environment(
    "Pathway environment", ROOT / ".venv-pathway", ROOT / "infra/locks/pathway.txt", installs_project=False
)
COMMON = {"event_id": "string", "event_type": "string", "occurred_at": "string"}
COLUMNS = {
    "orders_by_day": ("store_id", "day", "orders", "revenue_cents"),
    "orders_by_hour": ("store_id", "hour", "orders", "revenue_cents", "buyers"),
    "orders_by_colour": ("colour", "orders"),
    "page_views_per_user_hour": ("user_id", "hour", "page_views"),
    "word_count": ("word", "n"),
    "bus_latest": ("bus_id", "occurred_at"),
}
SHOWN = {
    "bus_id": "bus_id",
    "colour": "colour",
    "day": "CAST(CAST(day AS TIMESTAMP) AS DATE)",
    "hour": "strftime(CAST(hour AS TIMESTAMP), '%Y-%m-%d %H')",
    "occurred_at": "strftime(CAST(\"at\" AS TIMESTAMP), '%Y-%m-%d %H:%M:%S.%g')",
    "word": "word",
}
"""How a column is compared; the others are whole numbers."""


def made() -> str | None:
    """Make Pathway's environment as locked; why it cannot be, or None."""
    try:
        if not ENVIRONMENT.built():
            build(find_uv(), ENVIRONMENT)
    except SystemExit as error:
        return str(error).splitlines()[0]
    return None


def pathway(place: Stand) -> Span:
    """Everything landed and aggregated; the answers are right."""
    folder = place.settings.home / f"pathway-{os.urandom(4).hex()}"
    folder.mkdir()
    plan, span = folder / "plan.json", folder / "span.json"
    fields = {name: COMMON | {one.name: str(one.arrow) for one in project_contracts().of(name).fields} for name in READ}
    asked = {"servers": place.settings.kafka, "fields": fields, "folder": str(folder), "span": str(span)}
    plan.write_text(json.dumps(asked))
    python = str(ENVIRONMENT.folder / "bin/python")
    job = str(Path(__file__).with_name("job.py"))
    taken = place.measured([python, job, str(plan)], span, {"PATHWAY_THREADS": str(place.settings.cores)})
    check("Pathway", place.settings.producer_ledger, {name: _rows(folder, name) for name in SIX | LANDED})
    return taken


def _rows(folder: Path, name: str) -> str:
    """What DuckDB selects the rows of a view from, after all changes; of a landed topic their number."""
    changes = f"read_csv('{folder}/{name}.csv', header = true, all_varchar = true)"
    if name.startswith(LANDED_PREFIX):
        topic = name.removeprefix(LANDED_PREFIX)
        return f"(SELECT '{topic}' AS event_type, sum(CAST(diff AS BIGINT)) AS n FROM {changes})"
    shown = ", ".join(f"{SHOWN.get(column, f'CAST({column} AS BIGINT)')} AS {column}" for column in COLUMNS[name])
    left = f"SELECT * EXCLUDE (time, diff) FROM {changes} GROUP BY ALL HAVING sum(CAST(diff AS BIGINT)) > 0"
    return f"(SELECT {shown} FROM ({left}))"
