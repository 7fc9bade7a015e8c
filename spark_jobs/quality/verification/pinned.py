"""A pin of one verification, and its rows as readers are served them: by the read server, and of some views by Spark.

ledger -> pin at head -> rows of a view, and by which door they came. What one door refuses is read by Spark.
"""

import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow.fs import FileSystem

from spark_jobs import client
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.ledger.schema import Pin
from spark_jobs.ledger.source import Source, with_unbuilt
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.quality.reconciliation.causes import Causes, UnbuiltCauses
from spark_jobs.quality.verification import scope as scopes
from spark_jobs.quality.verification.expected import SecondWay
from spark_jobs.quality.verification.findings import Unable
from spark_jobs.quality.verification.sampled import SampledWay
from spark_jobs.quality.verification.scope import Scope
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.serving.render import ready
from spark_jobs.serving.sql import SqlError, ask, connect
from spark_jobs.settings import settings

log = logging.getLogger("tidemark.verify")
REMOVED_WITHIN = 20
"""Seconds, for the answers that the server has written."""
READ_SERVER, SPARK = "the read server", "Spark"


def unbuilt_too(store: Store, views: Views, published: Mapping[str, Source]) -> dict[str, Source]:
    """One source per view name, in the version that it is served from."""
    return ready(views, with_unbuilt(views.by_id, published), store.promoted())


@dataclass
class Pinned:
    """A pin of its own for one verification, begun when it is first needed, dropped with `stack`.

    A row of the ledger is all that the read server needs. Names in Spark's catalog are given to the views that Spark
    reads, so the pin is never `done`, and nobody takes the other names for lost.
    """

    store: Store
    views: Views
    scope_now: Callable[[], Scope]
    asked: list[Served] = field(default_factory=list)
    by_spark: frozenset[str] = frozenset()
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
        self.stack.callback(self._drop, name)  # before there is something to drop, as the making may fail half way
        try:
            return pins.begin(self.store, name, at, keep=timedelta(days=1))
        except LedgerError as error:
            raise Unable(f"no pin could be made: {error}") from error

    def _drop(self, name: str) -> None:
        """By a connection of its own: the other one may have been left in the middle of a statement."""
        if self.store.pin(name) is None:
            return
        if "connection" not in vars(self):  # nobody asked Spark: it has no names
            self.store.drop_pin(name)
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
            scopes.refuse_facts_ahead(self.store, way.oldest)
        if not is_whole:
            scopes.refuse_much(way.cut, self.pin.head)
        return way

    @cached_property
    def merged(self) -> LocalAnswers:
        """The answers that the pin should give, from the files; to tell named limits from breaches."""
        sources = unbuilt_too(self.store, self.views, self.store.sources(self.pin.publication_id))
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

    def answer(self, view: Served) -> tuple[pa.Table, str]:
        """The rows in question with their exact types, and which door gave them."""
        query = f"SELECT * FROM {pins.schema(self.pin.name)}.`{view.name}` WHERE {self.condition(view, Dialect.SPARK)}"
        if view.name in self.by_spark:
            return self._by_spark(view, query), SPARK
        try:
            return self.door.sql(query).arrow(), READ_SERVER
        except client.DoorError as error:
            return self._by_spark(view, query), f"{SPARK}, as {READ_SERVER} gave none: {error}"

    @cached_property
    def door(self) -> client.Door:
        return self.stack.enter_context(client.connect())

    def _by_spark(self, view: Served, query: str) -> pa.Table:
        """Its protocol turns values into text, so it writes files."""
        folder = f"{self.folder}/{view.name}"
        try:
            pins.give_names(self.execute, self.views, self.store, self.pin, only=view.name)
            self.execute(f"INSERT OVERWRITE DIRECTORY {quote_text(folder, Dialect.SPARK)} USING parquet {query}")
        except SqlError as error:
            raise Unable(f"{view.name} cannot be read through the pin: {error}") from error
        return ds.dataset(folder, format="parquet").to_table()


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
