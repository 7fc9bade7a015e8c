"""`replay`: do a part of history again, by a run of its own.

what somebody wants -> Wanted -> the run's plan; and before that, from files and past runs, what it would touch.
Views are built again from the facts as they are, or facts are made again from the raw bytes, and then the views over
those that came out otherwise.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from spark_jobs.batch.plan import FROM_FACTS, LSNS, REBUILT, Origin, plan
from spark_jobs.contracts.row_types import RECORD_ROW
from spark_jobs.definitions.bound_view import View
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.ledger.schema import Build, Replay, Run
from spark_jobs.ledger.store import Busy, LedgerError, Store
from spark_jobs.registry.views import Views
from spark_jobs.serving.marts import downstream
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.data_files import Bounds, files_within
from spark_jobs.storage.fact_slices import in_days
from spark_jobs.storage.lsn_ranges import Range, covering, predicate


@dataclass(frozen=True)
class Wanted:
    """A part of history; with neither days nor lsns, all of it.

    views: names, from facts alone; none: all. days: of facts (ISO). lsns: of raw records, both ends included.
    """

    origin: Origin
    views: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    lsns: tuple[Range, ...] = ()

    @property
    def is_all(self) -> bool:
        return not self.days and not self.lsns

    def as_json(self) -> dict[str, Any]:
        return {
            name: [*map(_plain, value)] if isinstance(value, tuple) else value for name, value in asdict(self).items()
        }

    @classmethod
    def of_json(cls, said: Mapping[str, Any]) -> "Wanted":
        lsns = tuple((first, last) for first, last in said["lsns"])
        return cls(said["origin"], tuple(said["views"]), tuple(said["days"]), lsns)

    def chosen(self, views: Views) -> list[View]:
        """The views that are built again. LedgerError for a name that no view has."""
        if unknown := {*self.views} - {view.name for view in views}:
            raise LedgerError(f"no view is called {', '.join(sorted(unknown))}; `tidemark views` lists them")
        return [view for view in views if not self.views or view.name in self.views]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def in_quarantine(topics: Iterable[str], reasons: Iterable[str]) -> list[Range]:
    """Ranges that cover the lsns of records in quarantine; of these topics, for these reasons, where any are named."""
    if not duckdb_reader.exists(tables.QUARANTINE):
        return []
    named = {"topic": [*topics], "reason": [*reasons]}
    where = [f"{column} IN ({_texts(values)})" for column, values in named.items() if values]
    with duckdb_reader.connect({"quarantine": tables.QUARANTINE}) as con:
        return covering(con, f"SELECT lsn FROM quarantine WHERE {' AND '.join(where) or 'true'}")


def _texts(values: Iterable[str]) -> str:
    return ", ".join(quote_text(value, Dialect.DUCKDB) for value in values)


def plan_replay(store: Store, views: Views, run_id: str) -> Run:
    """Plan the run of a replay at the newest cut, or return the plan of its first try.

    Raises RunActive while another run is at work, Busy outside of the hours of the settings, LedgerError for a replay
    that is unknown or cancelled.
    """
    if store.run(run_id) is None and not may_begin(settings().replay_hours, datetime.now(UTC)):
        raise Busy(f"replays begin in the hours {settings().replay_hours} UTC (replay_hours)")
    wanted = Wanted.of_json(store.asked_replay(run_id).wanted)
    chosen, columns = [view.id for view in wanted.chosen(views)], [view.column for view in views]
    days = [date.fromisoformat(day) for day in wanted.days]
    if wanted.origin == "facts":
        if wanted.is_all:
            return plan(store, columns, run_id, mode="full", wanted={REBUILT: chosen})
        return plan(store, columns, run_id, days, wanted={FROM_FACTS: chosen})
    lsns = [(1, store.decoded_cut())] if wanted.is_all else wanted.lsns
    return plan(store, columns, run_id, days, wanted={LSNS: [[first, last] for first, last in lsns if first <= last]})


def may_begin(hours: str | None, now: datetime) -> bool:
    """Whether the time is in the hours, such as 22-6: from the first on, before the second."""
    if hours is None:
        return True
    first, end = (int(hour) for hour in hours.split("-"))
    return first <= now.hour < end if first < end else now.hour >= first or now.hour < end


def preview(store: Store, views: Views, wanted: Wanted) -> dict[str, Any]:
    """What the replay would touch, from the tables' files and from past builds; nothing is computed.

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


def state(replay: Replay, run: Run | None) -> str:
    """Where the replay is, in a word or a few."""
    if replay.cancelled_at is not None:
        return "cancelled"
    if run is None:
        return "planned"
    if run.state in ("superseded", "failed"):
        return f"{run.state}: {run.error}"
    if run.state == "finished":
        return "nothing differs" if run.summary.get("nothing_new") or not replay.differences else "published"
    if replay.compared_at is None:
        return f"under way ({run.step})"
    return "approved" if replay.approved_at else "waits for approval"
