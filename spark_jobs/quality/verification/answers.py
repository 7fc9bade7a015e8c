"""I3: what readers see is what an independent program makes of the same records, row by row.

pin at head (Thrift) | log -> expected (oracle, or recomputed) -> one Finding per serving view, which says by which.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSystem

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.render import quote_text
from spark_jobs.ledger.schema import Pin
from spark_jobs.ledger.source import with_unbuilt
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.quality.reconciliation.attribution import attribute
from spark_jobs.quality.reconciliation.causes import Causes
from spark_jobs.quality.reconciliation.unbuilt_causes import UnbuiltCauses
from spark_jobs.quality.verification.expected import Expected, SecondWay
from spark_jobs.quality.verification.findings import Absent, Finding, State, Unable, finding
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Shape, compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready, servable
from spark_jobs.serving.sql import SqlError, ask, connect
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, tables

TOLERANCE = 1e-9
LIMITED = "within a named limit"
"""Relative, for floating values: the second way does its arithmetic in another order."""


@dataclass
class Pinned:
    """A pin of its own for one verification, opened when it is first needed, dropped with `stack`."""

    store: Store
    views: Views
    ledger: list[Path]
    stack: ExitStack = field(default_factory=ExitStack)
    evidence: dict[int, Causes] = field(default_factory=dict)

    @cached_property
    def connection(self) -> Any:
        try:
            return self.stack.enter_context(connect())
        except SqlError as error:
            raise Unable(str(error)) from error

    @cached_property
    def pin(self) -> Pin:
        def execute(statement: str) -> list[tuple[Any, ...]]:
            return ask(self.connection, statement).rows

        try:
            name = f"verify_{os.getpid()}_{datetime.now(UTC):%Y%m%d%H%M%S}"
            made = pins.create(execute, self.views, self.store, name, keep=timedelta(days=1))
        except (LedgerError, SqlError) as error:
            raise Unable(f"no pin could be made: {error}") from error
        self.stack.callback(pins.drop, execute, self.store, made.name)
        return made

    @cached_property
    def second_way(self) -> SecondWay:
        settings().tmp_dir.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="verify-", dir=settings().tmp_dir)
        folder = Path(self.stack.enter_context(scratch))
        log, sources = duckdb_reader.dataset(tables.MASTER_LOG), self.merged.sources
        cut = max(source.cut for source in sources.values())
        versions = [view for view in self.views if view.id in sources]
        return SecondWay(log, self.pin.head, cut, self.pin.now, versions, self.ledger, folder)

    @cached_property
    def merged(self) -> LocalAnswers:
        """The answers that the pin should give, from the files; to tell named limits from breaches."""
        found = with_unbuilt(self.views.by_id, self.store.sources(self.pin.publication_id))
        sources = ready(self.views, found, self.store.promoted())
        return LocalAnswers(self.views, sources, self.pin.head, self.pin.now)

    def limits(self, view: View) -> Causes:
        cut = self.merged.sources[view.id].cut
        if cut not in self.evidence:
            self.evidence[cut] = UnbuiltCauses(cut, self.pin.head)
        return self.evidence[cut]

    @cached_property
    def folder(self) -> str:
        """Where the server puts its answers: beside the tables, as it and this program both reach them."""
        folder = f"{settings().warehouse}/{self.pin.name}"
        fs, path = FileSystem.from_uri(folder)
        fs.create_dir(path)
        self.stack.callback(fs.delete_dir, path)
        return folder

    def answer(self, view: Served) -> pa.Table:
        """All rows with their exact types, which the server's protocol turns into text; so it writes them to files."""
        folder = f"{self.folder}/{view.name}"
        relation = f"{pins.schema(self.pin.name)}.`{view.name}`"
        try:
            ask(
                self.connection,
                f"INSERT OVERWRITE DIRECTORY {quote_text(folder, 'spark')} USING parquet SELECT * FROM {relation}",
            )
        except SqlError as error:
            raise Unable(f"{view.name} cannot be read through the pin: {error}") from error
        return ds.dataset(folder, format="parquet").to_table()


@contextmanager
def opened(store: Store, views: Views, ledger: list[Path]) -> Iterator[list[tuple[str, str, Callable[[], Finding]]]]:
    """The checks, one per serving view; the pin is gone afterwards."""
    pinned = Pinned(store, views, ledger)
    with pinned.stack:
        yield [
            ("I3", law_of(view), lambda view=view: is_as_expected(view, pinned))  # type: ignore[misc]
            for view in _served(store, views)
        ]


def _served(store: Store, views: Views) -> list[Served]:
    """The views in the versions that their names are served from; before any publication, those that would be."""
    found = with_unbuilt(views.by_id, store.current_sources())
    return servable(views, ready(views, found, store.promoted()))


def law_of(view: Served) -> str:
    return f"{view.name} is what its records give"


def is_as_expected(view: Served, pinned: Pinned) -> Finding:
    """Every row of the view, read through the pin, against those of the second way."""
    if not pinned.pin.head:
        raise Absent("nothing has landed yet")
    served = pinned.answer(view)
    found = compared(view, served, pinned.second_way.expected(view), pinned.merged, pinned.limits)
    if found.state is State.HOLDS or not isinstance(view, ChainedView):
        return found
    return inherited(
        view, served, found, is_as_expected(serving_plan.base_of(view, pinned.merged), pinned), pinned.merged
    )


def inherited(view: ChainedView, served: pa.Table, found: Finding, below: Finding, merged: LocalAnswers) -> Finding:
    """What a view over another differs in by the other's named limits alone; `below`: the finding of that one."""
    merged.con.register("served", served)
    strays = compare(merged.con, merged.answer(view), "FROM served", _shape(view))
    if strays.differing or below.state is not State.HOLDS or LIMITED not in below.note:
        return found
    return finding("I3", found.law, found.checked, "rows", (), note=f"{found.note}; of {view.base.name}: {below.note}")


def compared(
    view: Served, served: pa.Table, expected: Expected, merged: LocalAnswers, limits: Callable[[View], Causes]
) -> Finding:
    """`merged`: the same sources and head; `limits`: the evidence behind the named limits, made when it is needed."""
    law, names = law_of(view), (expected.by, "served")
    shape = _shape(view, expected.approximate)
    if missing := [name for name in shape.columns if name not in expected.rows.column_names]:
        raise Unable(f"{expected.by} does not know the columns {', '.join(missing)}")
    if missing := [name for name in shape.columns if name not in served.column_names]:
        return finding("I3", law, 0, "rows", [f"the serving view lacks the columns {', '.join(missing)}"])
    con = merged.con
    con.register("served", served)
    con.register("built", expected.rows)
    note = f"by {expected.by}; head {merged.head}, cut {merged.sources[serving_plan.stored_of(view, merged).id].cut}"
    found = compare(con, "FROM built", "FROM served", shape)
    if not found.differing or isinstance(view, ChainedView):
        said = found.first(names)
        return finding("I3", law, found.rows, "rows", said, count=found.differing, note=note)
    own = replace(shape, values=[name for name in shape.values if name not in view.lookups])
    strays = compare(con, merged.answer(view), "FROM served", shape, "strays")  # not even what the files give (I20)
    attributed = attribute(merged, view, replace(found, shape=own), limits(view), LocalAnswers.answer, strays)
    said = replace(attributed, shape=shape).first(names, where="cause IS NULL")
    causes = attributed.counts
    within = "".join(f"; {LIMITED}: {count:,} rows, {cause}" for cause, count in causes.items() if cause)
    return finding("I3", law, found.rows, "rows", said, count=causes.get(None, 0), note=note + within)


def _shape(view: Served, approximate: Mapping[str, float] | None = None) -> Shape:
    return replace(shape_of(view, served=True, tolerance=TOLERANCE), approximate=approximate or {})
