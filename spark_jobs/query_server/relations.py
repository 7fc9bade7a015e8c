"""The names that questions use, as relations of the engine: views of a moment, and tables of dbt and of the ledger.

schema.name -> files or rows in memory, registered -> a view of DuckDB's, made anew where its text has changed -> Read.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import sequences, serving_plan
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.query_server.kept import Kept
from spark_jobs.query_server.moments import Moment
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.speed_rows import Reached, SpeedRows
from spark_jobs.storage import duckdb_reader

DUCKDB = Dialect.DUCKDB
NAME = re.compile(r"\w+", re.ASCII)
SMALL = 1 << 20
"""Bytes of the files of a build that is read whole, once, instead of by each question."""
MANY = 500
"""Registered relations at which all are dropped: those of publications and pins that nobody asks any more."""


@dataclass(frozen=True)
class Read:
    """What a statement read. A view: publication, cut, last lsn, and when that was computed (of a pin: its now)."""

    table: str
    publication: int | None = None
    cut: int | None = None
    lsn: int | None = None
    as_of: datetime | None = None

    def json(self) -> dict[str, Any]:
        return asdict(self) | {"as_of": self.as_of.isoformat() if self.as_of else None}


class Relations:
    """What of the platform the connection `con` has names for."""

    def __init__(self, con: duckdb.DuckDBPyConnection, kept: Kept) -> None:
        self.con, self.speed = con, SpeedRows(kept)
        self._registered: dict[str, object] = {}
        self._texts: dict[tuple[str, str], str] = {}

    def view(self, schema: str, name: str, moment: Moment) -> Read:
        """Make the name mean the view of the moment. Refusal where the moment has no such view."""
        if name not in moment.views:
            hint = "GET /views lists them, and `tidemark views` those that are filling"
            raise Refusal("unknown", f"{schema} has no view {name}, or not yet: {hint}")
        view, parts = moment.views[name], _Parts(self, schema, moment)
        self._name(schema, name, serving_plan.answer(view, parts))
        cut = moment.sources[serving_plan.stored_of(view, parts).id].cut
        lsn, at = min(parts.reached) if moment.head is None else (moment.head, moment.now)
        return Read(f"{schema}.{name}", moment.publication, cut, max(lsn, cut), at)

    def table(self, schema: str, name: str) -> Read:
        """Make the name mean the table as it is now. Refusal where there is none."""
        try:
            if not NAME.fullmatch(name):
                raise duckdb_reader.NoTable(name)
            files = duckdb_reader.dataset(f"{schema}.{name}")
        except duckdb_reader.NoTable as error:
            hint = "it has tables alone; `--engine spark` knows views that dbt makes"
            raise Refusal("unknown", f"{schema} has no table {name}: {hint}") from error
        hidden = self.register(f"{schema}.{name}", lambda: files, object())
        self._texts.pop((schema, name), None)  # its columns may be others by now
        self._name(schema, name, f"SELECT * FROM {hidden}")
        return Read(f"{schema}.{name}")

    def built(self, table: str, version: int) -> str:
        """A version of a table that a build wrote: in memory where it is small."""
        return self.register(f"{table}@{version}", partial(_built, table, version), version)

    def register(self, name: str, read: Callable[[], pa.Table | ds.Dataset], stands_for: object) -> str:
        """Rows by a name, quoted; read where it did not stand for the same already."""
        if self._registered.get(name) != stands_for:
            self.con.register(name, read())
            self._registered[name] = stands_for
        return quote(name, DUCKDB)

    def tidy(self) -> None:
        """Between statements: forget all names where they have become many."""
        if len(self._registered) > MANY:
            for schema, name in self._texts:
                self.con.execute(f"DROP VIEW {quote(schema, DUCKDB)}.{quote(name, DUCKDB)}")
            for name in self._registered:
                self.con.unregister(name)
            self._texts.clear()
            self._registered.clear()

    def _name(self, schema: str, name: str, text: str) -> None:
        if self._texts.get((schema, name)) != text:
            self.con.execute(f"CREATE SCHEMA IF NOT EXISTS {quote(schema, DUCKDB)}")
            self.con.execute(f"CREATE OR REPLACE VIEW {quote(schema, DUCKDB)}.{quote(name, DUCKDB)} AS {text}")
            self._texts[schema, name] = text


def _built(table: str, version: int) -> pa.Table | ds.Dataset:
    files = duckdb_reader.dataset((table, version))
    sizes = files.filesystem.get_file_info(files.files) if files.files else []
    return files.to_table() if sum(file.size for file in sizes) <= SMALL else files


@dataclass(frozen=True)
class _Parts:
    """`serving_plan.Relations` of a moment."""

    relations: Relations
    schema: str
    moment: Moment
    dialect: Dialect = DUCKDB
    reached: list[Reached] = field(default_factory=list)
    """Of the stored views that were named: how far the speed layer has come with each."""

    @property
    def now(self) -> datetime | None:
        return self.moment.now

    @property
    def in_force(self) -> Iterable[View]:
        return self.moment.stored

    def built(self, view: View) -> list[str]:
        return [self.relations.built(table, version) for table, version in self.moment.sources[view.id].tables(view)]

    def added(self, view: View) -> str:
        source, head, speed = self.moment.sources[view.id], self.moment.head, self.relations.speed
        stands_for = (speed.version, source.cut, head)
        read = partial(speed.of, view, source.cut, head)
        name = self.relations.register(f"{self.schema}.{view.id}", read, stands_for)
        if head is None:
            self.reached.append(speed.reached(view, source.cut))
        upper = "" if head is None else f" AND lsn <= {head:d}"
        within = f"SELECT * FROM {name} WHERE lsn > {source.cut:d}{upper}"
        return sequences.counted_now(within, DUCKDB, source.horizon, source.hot_keys)
