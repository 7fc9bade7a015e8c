"""The form of `replay`: typed fields, and what they become on the command line."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import Param

from spark_jobs.orchestration.interface import SCHEMAS_FOLDER_VARIABLE, VIEWS_FOLDER_VARIABLE
from tidemark_airflow.command import ROOT


def _names(variable: str, default: str, pattern: str) -> list[str]:
    """What the project's files are called, without their version."""
    folder = Path(os.environ.get(variable) or ROOT / default)
    found = (re.fullmatch(pattern, file.name) for file in folder.glob("*.*"))
    return sorted({name[1] for name in found if name and name[1] != "__init__"})


VIEWS = _names(VIEWS_FOLDER_VARIABLE, "spark_jobs/views", r"(\w+?)(?:_v\d+)?\.py")
EVENT_TYPES = _names(SCHEMAS_FOLDER_VARIABLE, "schemas/events", r"(\w+)\.v\d+\.json")
NAMES = {"type": "string", "pattern": r"^\w+$"}
DAY = {"type": ["null", "string"], "format": "date"}
MOMENT = {"type": ["null", "string"], "format": "date-time"}
LSN = {"type": ["null", "integer"], "minimum": 1}

PARAMS = {
    "reason": Param(type="string", minLength=3, maxLength=500, title="Why", description="Kept with what comes of it."),
    "dry_run": Param(True, type="boolean", title="Dry run", description="Only the preview; untick it to go on."),
    "origin": Param(
        "raw", enum=["raw", "facts"], title="From", description="raw: decode raw bytes again. facts: build views again."
    ),
    "views": Param(
        [], type="array", items=NAMES, examples=VIEWS, title="Views", description="From facts; none: all."
    ),
    "promote": Param(
        False, type="boolean", title="Newest versions",
        description="Of the views: serve them from their newest versions then.",
    ),
    "event_types": Param(
        [], type="array", items=NAMES, examples=EVENT_TYPES, title="Event types",
        description="From facts: the views over them. In quarantine: records of their topics.",
    ),
    "from_day": Param(None, **DAY, title="First day", description="Of facts. No range at all: everything."),
    "to_day": Param(None, **DAY, title="Last day", description="By default the first."),
    "from_time": Param(None, **MOMENT, title="Landed from", description="Raw records that landed from then on."),
    "to_time": Param(None, **MOMENT, title="Landed before", description="By default now."),
    "from_lsn": Param(None, **LSN, title="First lsn", description="Raw records by their place in the log."),
    "to_lsn": Param(None, **LSN, title="Last lsn", description="By default the first."),
    "quarantined": Param(False, type="boolean", title="In quarantine", description="Decode again what is there."),
    "because": Param([], type="array", items=NAMES, title="Refused for", description="In quarantine: reason codes."),
}  # fmt: skip
VALUES = ("from_day", "to_day", "from_time", "to_time", "from_lsn", "to_lsn")


def options(form: Mapping[str, Any]) -> Iterator[str]:
    """The options of `tidemark replay plan`. A value stays in one word with its option, so none can be an option."""
    yield f"--reason={form['reason']}"
    yield f"--from={form['origin']}"
    yield from (f"--view={name}" for name in form["views"] or ())
    yield from (f"--event-type={name}" for name in form["event_types"] or ())
    yield from (f"--{name.replace('_', '-')}={form[name]}" for name in VALUES if form[name] is not None)
    if form["promote"]:
        yield "--promote"
    if form["quarantined"]:
        yield "--quarantined"
    yield from (f"--because={code}" for code in form["because"] or ())
