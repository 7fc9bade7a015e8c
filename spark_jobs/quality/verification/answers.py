"""I3: what readers see is what the oracle says, or what the log gives when it is recomputed; row by row.

pin at head (Thrift) | log -> expected (oracle, or recomputed) -> one Finding per serving view, which says by which.
"""

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSystem

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.ledger.schema import Pin
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.quality.reconciliation.agreement import attribute
from spark_jobs.quality.reconciliation.causes import Causes, UnbuiltCauses
from spark_jobs.quality.verification import scope as scopes
from spark_jobs.quality.verification.expected import Expected, SecondWay
from spark_jobs.quality.verification.findings import Absent, Check, Finding, Law, State, Unable
from spark_jobs.quality.verification.sampled import SampledWay
from spark_jobs.quality.verification.scope import Scope
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import Shape, compare, counts_by_cause, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready, servable
from spark_jobs.serving.sql import SqlError, ask, connect
from spark_jobs.settings import settings

log = logging.getLogger("tidemark.verify")
TOLERANCE = 1e-9
"""Relative, for floating values: the second way does its arithmetic in another order."""
LIMITED = "within a named limit"
REMOVED_WITHIN = 20
"""Seconds, for the answers that the server has written."""


@dataclass
class Pinned:
    """A pin of its own for one verification, opened when it is first needed, dropped with `stack`."""

    store: Store
    views: Views
    scope_now: Callable[[], Scope]
    asked: list[Served] = field(default_factory=list)
    stack: ExitStack = field(default_factory=ExitStack)

    @cached_property
    def scope(self) -> Scope:
        return self.scope_now()

    @cached_property
    def connection(self) -> Any:
        opened = ExitStack()
        try:
            connection = opened.enter_context(connect())
        except SqlError as error:
            raise Unable(str(error)) from error
        self.stack.callback(_hang_up, opened)
        return connection

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        return ask(self.connection, statement).rows

    @cached_property
    def pin(self) -> Pin:
        name = f"verify_{os.getpid()}_{datetime.now(UTC):%Y%m%d%H%M%S}"
        at = self._moment if self.scope.seed is not None else None
        assert self.connection is not None  # so that without a server no pin is begun
        self.stack.callback(self._drop, name)  # before there is something to drop, as the making may fail half way
        try:
            return pins.create(self.execute, self.views, self.store, name, at, keep=timedelta(days=1))
        except (LedgerError, SqlError) as error:
            raise Unable(f"no pin could be made: {error}") from error

    def _drop(self, name: str) -> None:
        """By a connection of its own: the other one may have been left in the middle of a statement."""
        if self.store.pin(name) is None:
            return
        try:
            with connect() as fresh:
                pins.drop(lambda statement: ask(fresh, statement).rows, self.store, name)
        except SqlError as error:
            log.warning("the pin %s stays until `tidemark retention` drops it: %s", name, error)

    @property
    def _moment(self) -> datetime | None:
        """The latest one by which only so many records had landed past the cut as a sample reads; None: now."""
        current = self.store.current_publication()
        if current is None or current.done_at is None:
            return None
        cut = max((source.cut for source in self.store.sources(current).values()), default=0)
        past = scopes.past(cut)
        return None if past is None else max(past, current.done_at)

    @cached_property
    def second_way(self) -> SecondWay:
        settings().tmp_dir.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix="verify-", dir=settings().tmp_dir)
        folder = Path(self.stack.enter_context(scratch))
        is_whole, is_large = self.scope.seed is None, self.scope.is_large
        way = (
            SecondWay(self.merged, folder, is_large)
            if is_whole
            else SampledWay(self.merged, folder, scope=self.scope, views=self.asked)
        )
        if is_large:
            scopes.refuse_facts_ahead(self.store, way.cut)
        if not is_whole:
            scopes.refuse_much(way.cut, self.pin.head)
        return way

    @cached_property
    def merged(self) -> LocalAnswers:
        """The answers that the pin should give, from the files; to tell named limits from breaches."""
        sources = _ready(self.store, self.views, self.store.sources(self.pin.publication_id))
        return LocalAnswers(self.views, sources, self.pin.head, self.pin.now)

    @cached_property
    def causes_past(self) -> Callable[[int], Causes]:
        """Cut -> the records that prove named limits there."""
        return cache(lambda cut: UnbuiltCauses(cut, self.pin.head))

    @cached_property
    def folder(self) -> str:
        """Where the server puts its answers: beside the tables, as it and this program both reach them."""
        folder = f"{settings().warehouse}/{self.pin.name}"
        fs, path = FileSystem.from_uri(folder)
        fs.create_dir(path)
        self.stack.callback(_remove, fs, path)
        return folder

    def condition(self, view: Served, d: Dialect) -> str:
        """SQL: whether a row of the answer is looked at."""
        source = self.merged.sources[serving_plan.stored_of(view, self.merged).id]
        return self.scope.condition(view, source, d)

    def answer(self, view: Served) -> pa.Table:
        """The rows in question with their exact types, which the server's protocol turns into text: it writes files."""
        folder = f"{self.folder}/{view.name}"
        where = self.condition(view, Dialect.SPARK)
        query = f"SELECT * FROM {pins.schema(self.pin.name)}.`{view.name}` WHERE {where}"
        try:
            self.execute(f"INSERT OVERWRITE DIRECTORY {quote_text(folder, Dialect.SPARK)} USING parquet {query}")
        except SqlError as error:
            raise Unable(f"{view.name} cannot be read through the pin: {error}") from error
        return ds.dataset(folder, format="parquet").to_table()


@contextmanager
def opened(store: Store, views: Views, scope: Callable[[], Scope]) -> Iterator[list[Check]]:
    """The checks, one per view that is served, or would be if nothing is published; the pin is gone afterwards."""
    asked = servable(views, _ready(store, views, store.current_sources()))
    pinned = Pinned(store, views, scope, asked)
    with pinned.stack:
        yield [(law_of(view), partial(is_as_expected, view, pinned)) for view in asked]


def _remove(fs: FileSystem, path: str) -> None:
    """Remove a folder into which the server may still write: the end of the time may have come within an answer."""
    for _ in range(REMOVED_WITHIN):
        try:
            fs.delete_dir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(1)
        else:
            return
    log.warning("the answers in %s stay: the server still writes them", path)


def _hang_up(opened: ExitStack) -> None:
    """Close the connection, which the end of the time may have left in the middle of an answer."""
    try:
        opened.close()
    except Exception as error:  # of the protocol, whatever it met
        log.info("the Thrift server's session ends by itself: %s", error)


def _ready(store: Store, views: Views, published: Mapping[str, Source]) -> dict[str, Source]:
    """One source per view name, in the version that it is served from."""
    return ready(views, with_unbuilt(views.by_id, published), store.promoted())


def law_of(view: Served) -> Law:
    return Law("I3", f"{view.name} is what its records give", "rows")


def is_as_expected(view: Served, pinned: Pinned) -> Finding:
    """Every row of the view, read through the pin, against those of the second way."""
    if not pinned.pin.head:
        raise Absent("nothing has landed yet")
    expected, served = pinned.second_way.expected(view), pinned.answer(view)
    where = pinned.condition(view, Dialect.DUCKDB)
    finding = compared(view, served, expected, pinned.merged, pinned.causes_past, where)
    if finding.state is State.HOLDS or not isinstance(view, ChainedView):
        return finding
    return inherited(
        view, served, finding, is_as_expected(serving_plan.base_of(view, pinned.merged), pinned), pinned.merged
    )


def inherited(view: ChainedView, served: pa.Table, finding: Finding, below: Finding, merged: LocalAnswers) -> Finding:
    """How a chained view differs by the named limits of its base alone; `below`: the finding of the base."""
    merged.con.register("served", served)
    strays = compare(merged.con, merged.answer(view), "FROM served", _shape(view))
    if strays.differing or below.state is not State.HOLDS or LIMITED not in below.note:
        return finding
    return law_of(view).finding(finding.checked, (), note=f"{finding.note}; of {view.base.name}: {below.note}")


def compared(
    view: Served,
    served: pa.Table,
    expected: Expected,
    merged: LocalAnswers,
    causes_past: Callable[[int], Causes],
    where: str = "true",
) -> Finding:
    """`merged`: the same sources and head; `causes_past`: a cut -> the causes of named limits, made when needed.

    where: the rows of the answer that `served` and `expected` have.
    """
    law, names = law_of(view), (expected.by, "served")
    shape = _shape(view, expected.approximate)
    if missing := [name for name in shape.columns if name not in expected.rows.column_names]:
        raise Unable(f"{expected.by} does not know the columns {', '.join(missing)}")
    if missing := [name for name in shape.columns if name not in served.column_names]:
        return law.finding(0, [f"the serving view lacks the columns {', '.join(missing)}"])
    con = merged.con
    con.register("served", served)
    con.register("built", expected.rows)
    cut = merged.sources[serving_plan.stored_of(view, merged).id].cut
    note = f"by {expected.by}; head {merged.head}, cut {cut}"
    comparison = compare(con, "FROM built", "FROM served", shape)
    if not comparison.differing or isinstance(view, ChainedView):
        return law.finding(comparison.rows, comparison.first(names), comparison.differing, note)
    own = replace(shape, values=[name for name in shape.values if name not in view.lookups])

    def answer(sources: LocalAnswers, of: View) -> str:
        return f"SELECT * FROM ({sources.answer(of)}) WHERE {where}"

    strays = compare(con, answer(merged, view), "FROM served", shape, "strays")  # not even what the files give (I20)
    attributed = attribute(merged, view, replace(comparison, shape=own), causes_past(cut), answer, strays)
    said = replace(attributed, shape=shape).first(names, where="cause IS NULL")
    causes = counts_by_cause(attributed)
    within = "".join(f"; {LIMITED}: {count:,} rows, {cause}" for cause, count in causes.items() if cause)
    return law.finding(comparison.rows, said, causes.get(None, 0), note + within)


def _shape(view: Served, approximate: Mapping[str, float] | None = None) -> Shape:
    return replace(shape_of(view, served=True, tolerance=TOLERANCE), approximate=approximate or {})
