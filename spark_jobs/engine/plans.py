"""Queries over few rows that come again and again: planned once, run for each micro-batch.

facts by type -> relations that stay -> a prepared statement for each query -> rows. To plan a query takes longer than
to run it over few rows. A plan reads whatever rows its relations hold when it runs.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

import duckdb
import pyarrow as pa

from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, quote

MOST = 500
"""Statements that are kept; then all are planned anew."""


class _Rows:
    """A relation to DuckDB: a stream of the rows that are there now."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.nothing = self.now = schema.empty_table()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.now.__arrow_c_stream__(requested_schema)


class Plans:
    """What was planned in an in-memory DuckDB, by a connection of its own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._relations: dict[str, _Rows] = {}
        self._statements: dict[str, str] = {}

    @property
    def relations(self) -> Collection[str]:
        """The names that queries may use: of all rows that were ever there; those that are not there now are empty."""
        return self._relations.keys()

    @contextmanager
    def over(self, tables: Mapping[str, pa.Table]) -> Iterator[Self]:
        """While these rows are there, by the names of their relations."""
        try:
            for name, rows in tables.items():
                self._relation(name, rows.schema).now = rows
            yield self
        finally:
            for relation in self._relations.values():
                relation.now = relation.nothing

    def ask(self, query: str, tables: Mapping[str, pa.Table]) -> pa.Table:
        """What the query says of these rows. Raises duckdb.Error."""
        with self.over(tables):
            return self.rows(query)

    def rows(self, query: str) -> pa.Table:
        """What the query says of the rows that are there. Raises duckdb.Error."""
        return duckdb_session.few_rows(self._connection, f"EXECUTE {self._statement(query)}")

    def is_usable(self) -> bool:
        """Not after an error that DuckDB takes for its own."""
        try:
            self._connection.execute("SELECT 1").fetchall()
        except duckdb.Error:
            return False
        return True

    def _relation(self, name: str, schema: pa.Schema) -> _Rows:
        """The relation; another one where its columns were others: a plan would go on reading the one of before."""
        found = self._relations.get(name)
        if found and found.schema == schema:
            return found
        if found:
            self._forget()
        made = self._relations[name] = _Rows(schema)
        self._connection.register(name, made)
        return made

    def _statement(self, query: str) -> str:
        if query not in self._statements:
            if len(self._statements) >= MOST:
                self._forget()
            name = quote(f"q{len(self._statements)}", Dialect.DUCKDB)
            self._connection.execute(f"PREPARE {name} AS {query}")
            self._statements[query] = name
        return self._statements[query]

    def _forget(self) -> None:
        for name in self._statements.values():
            self._connection.execute(f"DEALLOCATE {name}")
        self._statements.clear()
