"""Every in-memory DuckDB of the platform starts here: instants are in UTC, and one thread unless more are asked for."""

import duckdb


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A new database in memory."""
    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET TimeZone = 'UTC'")
    return connection
