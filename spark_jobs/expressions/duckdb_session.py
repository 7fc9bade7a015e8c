"""Every in-memory DuckDB of the platform starts here: instants are in UTC, and one thread unless more are asked for."""

import warnings
from functools import cache

import duckdb
import pyarrow as pa


def connect(threads: int = 1) -> duckdb.DuckDBPyConnection:
    """A new database in memory."""
    connection = duckdb.connect(config={"threads": threads})
    connection.execute("SET GLOBAL TimeZone = 'UTC'")  # for its cursors, too
    return connection


def few_rows(connection: duckdb.DuckDBPyConnection, statement: str) -> pa.Table:
    """Run the statement. Its rows are copied once more than by `sql`, which plans it twice: better for few."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return connection.execute(statement).to_arrow_table()


@cache
def shared() -> duckdb.DuckDBPyConnection:
    """One for all who ask a little, as to open one takes 20 to 40 ms; a thread beside others asks by a cursor of it."""
    return connect()
