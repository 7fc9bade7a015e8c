"""Every in-memory DuckDB of the platform starts here: instants are in UTC, and one thread unless more are asked for."""

from functools import cache

import duckdb


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A new database in memory."""
    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET GLOBAL TimeZone = 'UTC'")  # for its cursors, too
    return connection


@cache
def for_checks() -> duckdb.DuckDBPyConnection:
    """One for all checks of expressions and views: to open one takes longer than to check a view."""
    return connect()
