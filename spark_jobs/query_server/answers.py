"""Answer questions: of a statement, of a view's key, of which views there are.

request -> checked -> names made -> rows and what was read -> Answer. One at a time; a worker's process has it.
"""

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from spark_jobs.engine.chained_view import Served
from spark_jobs.expressions.dialect import Dialect, quote, type_of
from spark_jobs.ledger.store import LedgerError, Store
from spark_jobs.publication import pins
from spark_jobs.publication.pins import PREFIX
from spark_jobs.query_server import engine
from spark_jobs.query_server.kept import Kept
from spark_jobs.query_server.meaning import WHOLE
from spark_jobs.query_server.moments import Moment, Moments
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.relations import Read, Relations
from spark_jobs.query_server.statement import MOMENT, SCHEMAS, Question, question, schema_of
from spark_jobs.registry.views import Views
from spark_jobs.settings import Settings
from spark_jobs.storage import duckdb_reader
from spark_jobs.storage.duckdb_reader import NoTable

DUCKDB = Dialect.DUCKDB
KEPT = 64 << 20
"""Bytes of speed rows that a worker keeps in memory."""
OF_TABLES = ("marts", "ops")
"""Schemas with tables in the place of views."""
TOLD = ("publication", "cut", "lsn", "as_of")
LATEST_SECONDS = 0.25
"""How old what is known of the publication in force may be."""


@dataclass(frozen=True)
class Answer:
    rows: pa.Table
    read: tuple[Read, ...]

    def meta(self) -> dict[str, Any]:
        """What the answer is worth: the least publication, cut, lsn and time of the views that were read."""
        views = [one.json() for one in self.read if one.publication is not None]
        least = {name: min((view[name] for view in views), default=None) for name in TOLD}
        return least | {"read": [one.json() for one in self.read], "rows": self.rows.num_rows}


@dataclass
class Answers:
    views: Views
    store: Store
    settings: Settings
    _known: Moment | None = field(default=None, init=False)
    _known_at: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._con = engine.connect(self.settings.query_memory_mb)
        self._moments = Moments(self.views, self.store)
        self._relations = Relations(self._con, Kept(KEPT))

    def ask(self, text: str, schema: str = "serving", as_of: str | None = None, values: Sequence[Any] = ()) -> Answer:
        """One statement; names without a schema are of `schema`, or of the views as of a moment. Refusal.

        values: one for each `?`.
        """
        asked, read = self._asked(text, schema, as_of)
        return Answer(engine.rows(self._con, asked.sql, _named(asked, values), self.settings.query_rows), read)

    def describe(
        self, text: str, schema: str = "serving", as_of: str | None = None, values: Sequence[Any] = ()
    ) -> tuple[pa.Schema, int]:
        """The columns that a statement would have, and how many parameters it takes. Refusal.

        values: one for each `?`; where none is given, a column that is a parameter has no type.
        """
        asked, _ = self._asked(text, schema, as_of)
        named = _named(asked, values or [None] * len(asked.parameters))
        return engine.columns(self._con, asked.sql, named), len(asked.parameters)

    def _asked(self, text: str, schema: str, as_of: str | None) -> tuple[Question, tuple[Read, ...]]:
        asked = question(text, MOMENT if as_of is not None else schema_of(schema))
        named = {schema for schema, _ in asked.tables} - {*OF_TABLES}
        return asked, self._give_names(asked.tables, {schema: self._moment(schema, as_of) for schema in sorted(named)})

    def schemas(self) -> list[str]:
        """The schemas that a statement may name."""
        return [*SCHEMAS, *(pins.schema(pin.name) for pin in self.store.pins())]

    def list_tables(self, schema: str, with_columns: bool) -> Iterator[tuple[str, str, tuple[str, ...], pa.Schema]]:
        """The views or tables of a schema: name, VIEW or TABLE, keys, and columns where wanted. Raises Refusal."""
        if schema_of(schema) in OF_TABLES:
            found = {name: ("TABLE", tuple[str, ...]()) for name in duckdb_reader.tables_of(schema)}
        else:
            views = self._moment(schema, None).views
            found = {name: ("VIEW", tuple(view.served_keys)) for name, view in views.items()}
        for name, (kind, keys) in sorted(found.items()):
            columns = self.describe(f"SELECT * FROM `{name}`", schema)[0] if with_columns else pa.schema([])
            yield name, kind, keys, columns

    def look_up(self, name: str, key: Mapping[str, str], schema: str = "serving", as_of: str | None = None) -> Answer:
        """The rows of a view with these values of its keys. Refusal."""
        schema = MOMENT if as_of is not None else schema_of(schema)
        _refuse_tables(schema)
        moment = self._moment(schema, as_of)
        [read] = self._give_names([(schema, name)], {schema: moment})
        view = moment.views[name]
        _refuse_other_keys(view, key)
        same = [f"{quote(k, DUCKDB)} = CAST(${k} AS {type_of(view.served_keys[k], DUCKDB)})" for k in key]
        where = f" WHERE {' AND '.join(same)}" if same else ""
        sql = f"SELECT * FROM {quote(schema, DUCKDB)}.{quote(name, DUCKDB)}{where}"
        return Answer(engine.rows(self._con, sql, key, self.settings.query_rows), (read,))

    def list_views(self, schema: str = "serving") -> list[dict[str, Any]]:
        """Each view of the schema: its keys and columns with their types, what it answers, its cut. Refusal."""
        _refuse_tables(schema_of(schema))
        return [_described(view) for _, view in sorted(self._moment(schema_of(schema), None).views.items())]

    def _give_names(self, tables: Iterable[tuple[str, str]], moments: Mapping[str, Moment]) -> tuple[Read, ...]:
        """Give the engine the names, all of one version of the hot tables, and those of a schema of one moment."""
        if not tables:
            return ()
        self._relations.tidy()
        try:
            self._relations.speed.follow()
            return tuple(self._name(schema, name, moments) for schema, name in tables)
        except NoTable as error:
            raise Refusal("unknown", f"there is nothing to ask yet: {error}") from error

    def _name(self, schema: str, name: str, moments: Mapping[str, Moment]) -> Read:
        if schema in OF_TABLES:
            return self._relations.table(schema, name)
        return self._relations.view(schema, name, moments[schema])

    def _moment(self, schema: str, as_of: str | None) -> Moment:
        try:
            if schema.startswith(PREFIX):
                return self._moments.pin(schema)
            if schema == MOMENT:
                return self._moments.as_of(str(as_of))
            return self._serving()
        except LedgerError as error:
            raise Refusal("unknown", str(error)) from error

    def _serving(self) -> Moment:
        now = time.monotonic()
        if self._known is None or now - self._known_at > LATEST_SECONDS:
            self._known, self._known_at = self._moments.serving(), now
        return self._known


def _named(asked: Question, values: Sequence[Any]) -> dict[str, Any]:
    if len(values) != len(asked.parameters):
        raise Refusal("refused", f"{len(asked.parameters)} parameters (?) and {len(values)} values")
    return dict(zip(asked.parameters, values, strict=True))


def _refuse_tables(schema: str) -> None:
    if schema in OF_TABLES:
        raise Refusal("refused", f"{schema} has tables, no views")


def _refuse_other_keys(view: Served, key: Mapping[str, str]) -> None:
    if others := key.keys() - view.served_keys.keys():
        has = f"it has {', '.join(view.served_keys)}" if view.served_keys else "it has none"
        raise Refusal("refused", f"{view.name} has no key {', '.join(sorted(others))}; {has}")
    for name, value in key.items():
        if view.served_keys[name] == "BIGINT" and not re.fullmatch(WHOLE, value):
            raise Refusal("refused", f"{view.name}: {name} is an integer, and {value!r} is none")


def _described(view: Served) -> dict[str, Any]:
    return {
        "view": view.name,
        "version": view.version,
        "answers": view.description,
        "keys": dict(view.served_keys),
        "columns": dict(view.answer_kinds),
    }
