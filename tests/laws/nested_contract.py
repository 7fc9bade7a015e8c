"""An event type whose fields stand at places of every kind, beside those of the project."""

from pathlib import Path
from tempfile import TemporaryDirectory

from spark_jobs.contracts.loader import load_contracts, project_contracts
from spark_jobs.contracts.model import INSTANT_PATTERN, Contracts
from tests.contract_files import write

_INSTANT = {"format": "date-time", "pattern": INSTANT_PATTERN}
FIELDS = {
    "event_id": {"type": "string", "maxLength": 12, "x-from": ["meta.number", "kind|meta.kind"]},
    "occurred_at": {"type": "string", **_INSTANT, "x-from": "meta.at|at"},
    "deleted": {"type": "boolean", "x-from": "kind=gone"},
    "beats": {"type": "integer", "minimum": 0, "maximum": 300, "x-from": "after.beats|before.beats|beats"},
    "number": {"type": ["integer", "null"], "minimum": 0, "maximum": 2**63, "x-from": "meta.number"},
    "load": {"type": ["number", "null"], "minimum": -1, "x-from": "after.inner.load"},
    "calm": {"type": "boolean", "x-from": "before.calm"},
    "mood": {"type": ["string", "null"], "enum": ["calm", "wild"]},
    "note": {
        "type": "string",
        "minLength": 1,
        "maxLength": 5,
        "pattern": "^[a-z]*$",
        "x-from": "after.note|note",
    },
    "rested_at": {"type": ["string", "null"], **_INSTANT, "x-from": "after.rested"},
}
EXAMPLES = [
    {
        "kind": "seen",
        "meta": {"at": 1740830400000, "number": 7, "more": "x"},
        "before": {"beats": 59, "inner": {"load": 1}},
        "after": {
            "beats": 60,
            "rested": "2024-02-29T12:00:00.000Z",
            "inner": {"load": 0.5, "calm": True, "note": "ab"},
        },
    },
    {"kind": "gone", "meta": {"at": 1740830400001, "kind": "seen"}, "beats": 61, "after": None, "note": "b"},
    {"meta": {"kind": "k", "number": 0}, "at": 0, "before": {"beats": 1}, "after": {"inner": None}, "mood": "wild"},
]


def contracts() -> Contracts:
    """The project's event types and this one, `heart_beaten`."""
    with TemporaryDirectory() as folder:
        about = {"key": "beats", "owner": "health", "compacted": True}
        write(Path(folder), fields=FIELDS, examples=EXAMPLES, **{"x-tidemark": about})
        return Contracts({**project_contracts().versions, **load_contracts(Path(folder)).versions})
