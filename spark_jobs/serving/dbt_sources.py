"""The views as dbt sources: `models/sources.yml` of the dbt folder, written from the registry.

views -> YAML text. The schema is the pin that `tidemark dbt` names in TIDEMARK_PIN, so that all models of a run read
the same position of the log. No tests: the gate has checked what is published by its suites.
Alone: `tidemark dbt sources [--check]`.
"""

from pathlib import Path
from typing import Any

import yaml

from spark_jobs.definitions.bound_view import RANK, AggregateView
from spark_jobs.definitions.measures.base import BoundMeasure
from spark_jobs.engine import chained_view
from spark_jobs.engine.chained_view import Served
from spark_jobs.registry.views import Views
from spark_jobs.settings import settings

HEADER = "# Written by `tidemark dbt sources` from the views; do not edit.\n"
DESCRIPTION = (
    "Every view as it was served at one position of the log. The schema is a pin: it does not change while dbt runs, "
    "so numbers of different views add up."
)


def render(views: Views) -> str:
    """The file's text, the same for the same views; one table per view name, of its newest version."""
    tables = [_table(view) for _, view in sorted(views.served.items())]
    schema = "{{ env_var('TIDEMARK_PIN') }}"
    source = {"name": "serving", "schema": schema, "description": DESCRIPTION, "tables": tables}
    content = {"version": 2, "sources": [source]}
    return HEADER + yaml.safe_dump(content, sort_keys=False, width=120, allow_unicode=True)


def sources_file() -> Path:
    return settings().dbt_folder / "models/sources.yml"


def is_current(views: Views) -> bool:
    return sources_file().is_file() and sources_file().read_text(encoding="utf-8") == render(views)


def write(views: Views) -> bool:
    """Bring the file up to date; returns whether it had to change."""
    if is_current(views):
        return False
    sources_file().write_text(render(views), encoding="utf-8")
    return True


def _table(view: Served) -> dict[str, Any]:
    return {
        "name": view.name,
        "description": view.description,
        "config": {"meta": {"owner": view.owner, "view_version": view.version, "event_types": list(view.event_types)}},
        "columns": [{"name": name, **said} for name, said in columns(view).items()],
    }


def columns(view: Served) -> dict[str, dict[str, str]]:
    """The served columns in their order, each with its type if declared, and what it is made of."""
    shaped = chained_view.aggregate_of(view)
    if shaped is None:
        return {name: {"data_type": kind} for name, kind in view.answer_kinds.items()}
    keys = {name: _key(shaped, name, kind) for name, kind in shaped.served_keys.items()}
    measures = {m.name: {"data_type": m.answer_kind, "description": _made_of(m)} for m in shaped.measures}
    derived = {name: {"data_type": bound.kind, "description": bound.text} for name, bound in shaped.derived.items()}
    lookups = {
        name: {"description": f"{look.column} of {look.view}, as it is now"} for name, look in shaped.lookups.items()
    }
    rank = {RANK: {"data_type": "BIGINT", "description": f"1 for the greatest {shaped.top.by}"}} if shaped.top else {}
    return keys | measures | derived | rank | lookups


def _key(view: AggregateView, name: str, kind: str) -> dict[str, str]:
    made_of = f"Key: {view.keys[name].text}" if name in view.keys else "The window's: its start is in it, its end not"
    return {"data_type": kind, "description": made_of}


def _made_of(measure: BoundMeasure) -> str:
    of = f"({', '.join(part.text for part in measure.parts)})" if measure.parts else ""
    where = f" where {measure.condition.text}" if measure.condition else ""
    return f"{type(measure.measure).__name__}{of}{where}"
