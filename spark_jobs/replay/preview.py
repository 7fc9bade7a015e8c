"""What a replay would touch, from the tables' files and from past builds; nothing is computed."""

from collections.abc import Iterable
from datetime import date
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.contracts.row_types import RECORD_ROW
from spark_jobs.definitions.bound_view import View
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.ledger.schema import Build
from spark_jobs.ledger.store import Store
from spark_jobs.registry.views import Views
from spark_jobs.replay.wanted import Wanted
from spark_jobs.serving.marts import downstream
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.data_files import Bounds, files_within
from spark_jobs.storage.fact_slices import in_days
from spark_jobs.storage.lsn_ranges import predicate


def preview(store: Store, views: Views, wanted: Wanted) -> dict[str, Any]:
    """What the replay would touch, view by view and in all.

    records: raw ones to decode again; bytes: of the files to read; seconds: of work in tasks, None where no build of
    any of the views is known; marts: dbt models over the views.
    """
    chosen, last = wanted.chosen(views), store.last_builds()
    seconds = [last[view.id].seconds for view in chosen if view.id in last]
    records, size = _raw(wanted) if wanted.origin == "raw" else (0, 0)
    types = sorted({name for view in chosen for name in view.event_types})
    return {
        "records": records,
        "bytes": size + sum(_bytes(tables.facts(name), _days(wanted.days)) for name in types),
        "seconds": round(sum(seconds), 1) if seconds else None,
        "views": [_touched(view, wanted, last.get(view.id)) for view in chosen],
        "marts": downstream({view.name for view in chosen}),
    }


def _touched(view: View, wanted: Wanted, last: Build | None) -> dict[str, Any]:
    rows = {"rows": last.row_count, "seconds": round(last.seconds, 1)} if last else {"rows": None, "seconds": None}
    return {"view": view.id, "how": _how(view, wanted), **rows}


def _how(view: View, wanted: Wanted) -> str:
    if wanted.days and view.bucket:
        return f"{len(wanted.days)} days from their facts"
    return "from all facts" if wanted.origin == "facts" else "where facts come out otherwise"


def _raw(wanted: Wanted) -> tuple[int, int]:
    """Records of the log that are decoded again, about, and the bytes of the files that they are in."""
    if not duckdb_reader.exists(tables.MASTER_LOG):
        return 0, 0
    asked = "true" if wanted.is_all else f"({in_days(wanted.days, 'landed_on') or 'false'} OR {predicate(wanted.lsns)})"
    with duckdb_reader.connect({"log": tables.MASTER_LOG}) as con:
        kind = quote_text(RECORD_ROW, Dialect.DUCKDB)
        [(records,)] = con.execute(f"SELECT count(*) FROM log WHERE kind = {kind} AND {asked}").fetchall()
    bounds: Bounds = {} if wanted.days or wanted.is_all else {"lsn": list(wanted.lsns)}
    return records, _bytes(tables.MASTER_LOG, bounds)


def _days(days: Iterable[str]) -> Bounds:
    return {"day": [(one, one) for one in map(date.fromisoformat, days)]} if days else {}


def _bytes(table: str, bounds: Bounds) -> int:
    if not duckdb_reader.exists(table):
        return 0
    files: pa.Table = files_within(DeltaTable(tables.path(table)), bounds)
    return int(pc.sum(files["size_bytes"]).as_py() or 0)
