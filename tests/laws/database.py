"""A connection in which every view's DuckDB text runs."""

from functools import cache

import duckdb

from spark_jobs.engine.sketches import add_sketches
from spark_jobs.expressions import duckdb_session


def connect() -> duckdb.DuckDBPyConnection:
    """Its temporary tables and relations are its own."""
    return _database().cursor()


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """One for all: to open one takes longer than to answer a case."""
    database = duckdb_session.connect()
    add_sketches(database)
    return database
