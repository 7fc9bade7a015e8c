"""SOAK: what the platform's own steps cost after weeks of uptime, in compressed time, and how many files they leave.

micro-batches (landed, decoded, computed and committed in this process) -> compaction after each, at a clock that runs
ahead -> each night a build, a publication, and trimming of what no publication reads -> days of figures -> their slope.
The tables are real; Kafka, the JVM and the builds' own cost are left out, as they do not depend on uptime. A run counts
only where every answer at its end is that of the log alone.
"""

import datetime as dt
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import EVERY_SCHEMA
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import serving_plan
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.ledger import store as ledger
from spark_jobs.ledger.source import Source
from spark_jobs.quality import recompute
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.speed import catch_up, compaction, continuity, in_process, land, partials_table, trimming
from spark_jobs.speed.in_process import InProcessBatch, InProcessWriter
from spark_jobs.speed.partials_step import Derived, process
from spark_jobs.storage import batch_tables, coverage, ddl, duckdb_reader, tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs
from spark_jobs.storage.vacuum import vacuum
from tests.bench.own_home import homed, own_home
from tests.bench.soak_figures import Figures, Row
from tests.local_platform import Platform, event

DAY = 86_400
VIEWS = ("orders_by_day", "bus_latest", "word_count")
ASKED, WHERE = "orders_by_day", "store_id = 1"
NIGHTS_KEPT = 30
FILLING = 8
"""Days past those nights until all is there that uptime gives: a file of a week is trimmed as a whole."""
WINDOW = 180
"""Ids that the window holds, of three a micro-batch: by number, as its seconds would be those of the machine."""
BEGAN = 2_860.0 * 7 * DAY
"""Midnight of a day at which a week of compaction begins."""
CONTROL = "control"
HOT = (tables.MASTER_LOG, tables.SPEED_PARTIALS)


@dataclass(frozen=True)
class Timed:
    """A batch whose commit is timed."""

    batch: InProcessBatch
    figures: Figures

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batch, name)

    def commit(self, derived: Derived, control_rows: Any) -> None:
        with self.figures.cpu("append to speed.partials, ms"):
            self.batch.commit(derived, control_rows)


@dataclass(frozen=True)
class Control:
    """The tables as they were when all was there that uptime gives: what they take longer later is the machine's."""

    home: Path
    sources: dict[str, Source]
    lsn: int


class Uptime:
    """The speed layer's steps by a clock of one's own; `every`: seconds of it from one micro-batch to the next."""

    def __init__(self, every: float) -> None:
        self.every, self.figures = every, Figures(NIGHTS_KEPT + FILLING)
        self.place, self.store = Platform(VIEWS), ledger.open()
        self.views: list[View] = list(self.place.views)
        land.create()
        partials_table.create(self.views)
        self.fence, self.turn = Fence(1), threading.Lock()
        self.writer = InProcessWriter(EVERY_SCHEMA, self.fence)
        self.window, self.lsn = _window(), 0
        self.nights: list[dt.datetime] = []
        self.control: Control | None = None

    @property
    def now(self) -> float:
        return BEGAN + self.lsn * self.every

    def micro_batch(self) -> None:
        self.lsn += 1
        self.place.lsn = self.lsn
        records = pa.Table.from_pylist([self.place.record(one) for one in _events(self.lsn)], row_types.RECORD)
        taken = [continuity.Range(topic, 0, 0, offset) for topic, offset in self.place.offsets.items()]
        started_at, figures = dt.datetime.now(dt.UTC), self.figures
        with figures.cpu("micro-batch, ms"), patch.object(in_process, "batch_row", self._batch_row):
            with figures.cpu("append to master.log, ms"):
                self.writer.land(records, self.lsn, land.control(1, taken, {}, started_at))
            batch, known = Timed(self.writer.decode(records, self.lsn), figures), SideInputs([], 0)
            process(batch, {self.lsn: records.num_rows}, self.views, self.window, known, started_at)
        with figures.cpu("compaction per micro-batch, ms"):
            compaction.compact(self.turn, self.fence, self.now)

    def _batch_row(self, *about: Any) -> pa.Table:
        """The control row, landed today; the log's files are those of a day."""
        row, today = land.batch_row(*about), dt.datetime.fromtimestamp(self.now, dt.UTC).date()
        at = row.column_names.index("landed_on")
        return row.set_column(at, row.schema.field(at), pa.array([today], pa.date32()))

    def ask(self) -> None:
        """What readers and a start find now, and in the control; what the micro-batches leave behind."""
        self._ask(self._sources, self.lsn)
        if control := self.control:
            with homed(control.home):
                self._ask(lambda: control.sources, control.lsn, of="the control, ")
        for name in HOT:
            self.figures.add(f"files of {name}", len(DeltaTable(tables.path(name)).file_uris()))
            self.figures.add(f"_delta_log of {name}", len(list(Path(tables.path(name), "_delta_log").iterdir())))
        self.figures.add("memory, MiB", _resident())

    def _ask(self, sources: Callable[[], dict[str, Source]], lsn: int, of: str = "") -> None:
        with self.figures.cpu(f"{of}load of both hot tables by delta-rs, ms"):
            for table in HOT:
                DeltaTable(tables.path(table))
        with self.figures.cpu(f"{of}point query by DuckDB, ms"):
            answers = LocalAnswers(self.place.views, sources(), lsn)
            answers.con.sql(f"FROM ({answers.answer(self.place.views[ASKED])}) WHERE {WHERE}").fetchall()
            answers.con.close()
        with self.figures.cpu(f"{of}start, ms"):  # what a start of the speed application reads
            land.create()
            head = land.log_end().lsn
            partials_table.restore_window(_window(), head)
            floors = {view.column: source.cut for view in self.views if (source := sources().get(view.id))}
            lacking = list(catch_up.all_gaps({view.column: 0 for view in self.views} | floors, 0))
        assert not lacking, lacking

    def night(self) -> None:
        """Build, publish, expire what is older than the nights that are kept, trim what nobody reads, vacuum."""
        parts = LocalAnswers(self.place.views, self._sources(), self.lsn)
        built = {view.id: self._built(parts, view) for view in self.views}
        parts.con.close()
        self.store.finish_publication(self.store.begin_publication("run", built, cut=self.lsn).id)
        self.nights = [*self.nights, dt.datetime.now(dt.UTC)][-NIGHTS_KEPT:]
        self.store.expire_publications(self.nights[0])
        trimming.trim(self.store.lowest_live_cut(), self.turn, self.fence)
        for table in HOT:
            vacuum(tables.path(table), 0)
        self.figures.day += 1
        if self.figures.day == self.figures.filling:
            home = settings().home
            shutil.copytree(settings().warehouse, home / CONTROL / Path(settings().warehouse).relative_to(home))
            self.control = Control(home / CONTROL, self._sources(), self.lsn)

    def _built(self, parts: LocalAnswers, view: View) -> Source:
        """The view's partials up to now in a new version of its table."""
        rows = parts.con.sql(f"FROM {serving_plan.merged(view, parts)}").to_arrow_table()  # type: ignore[arg-type]
        batch_tables.create(view.tables[0], rows.schema)
        write_deltalake(tables.path(view.tables[0]), rows, mode="overwrite")
        return Source(duckdb_reader.version(view.tables[0]), None, self.lsn, None)

    def _sources(self) -> dict[str, Source]:
        unbuilt = Source(None, None, 0, None)
        return {view.id: unbuilt for view in self.views} | self.store.current_sources()

    def differing(self) -> list[str]:
        """Views whose answer is not that of the log alone."""
        parts, log = LocalAnswers(self.place.views, self._sources(), self.lsn), recompute.facts(self.lsn)
        return [
            view.id
            for view in self.views
            if sorted(map(repr, parts.con.sql(parts.own(view)).fetchall()))
            != sorted(map(repr, log.sql(recompute.answer(log, view)).fetchall()))
        ]


def _window() -> IdWindow:
    return IdWindow(settings().id_window_seconds, settings().id_window_max_ids)


def _events(number: int) -> list[dict[str, Any]]:
    """A few events of a bounded set of keys, within one day, so that answers do not grow."""
    at = dt.datetime(2026, 3, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=number * 131 % DAY)
    return [
        event("order_placed", at, store_id=number % 20 + 1, user_id=number % 7 + 1),
        event("bus_position_reported", at, bus_id=f"bus-{number % 10}"),
        event("sentence_posted", at, text="the quick brown fox jumps over the lazy dog"),
    ]


def _resident() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def soak(micro_batches: int, days: int, say: Callable[[str], None]) -> list[Row]:
    """A row per figure: the first and the last steady week, and the slope over all of them in percent."""
    with _home():
        uptime = Uptime(days * DAY / micro_batches)
        per_day = micro_batches // days
        for number in range(1, micro_batches + 1):
            uptime.micro_batch()
            if number % max(per_day // 10, 1) == 0:
                uptime.ask()
            if number % per_day == 0:
                uptime.night()
                say(f"{number:,} micro-batches, day {uptime.figures.day}: {_state(uptime)}")
        assert not (wrong := uptime.differing()), wrong
        return uptime.figures.rows()


def _state(uptime: Uptime) -> str:
    """Files, and the lsns that have partials still."""
    lsns = coverage.covered(0)
    files = {table: len(DeltaTable(tables.path(table)).file_uris()) for table in HOT}
    return f"{files}, lsn {min(lsns)} to {max(lsns)}, {_resident():.0f} MiB"


@contextmanager
def _home() -> Iterator[None]:
    """A platform of one's own. What it keeps of its Delta logs and of the ids it has seen goes by numbers: minutes of
    the machine's clock would hold the more commits the faster it is.
    """
    short = dict.fromkeys(("delta.logRetentionDuration", "delta.deletedFileRetentionDuration"), "interval 0 seconds")
    with (
        own_home("soak", TIDEMARK_ID_WINDOW_MAX_IDS=str(WINDOW)),
        patch.dict(ddl.COMMITTED_OFTEN, short),
        patch.dict(ddl.GROWS_FOR_EVER, short),
    ):
        yield
