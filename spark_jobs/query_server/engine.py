"""The engine of a worker: DuckDB in memory, which reads what it is handed and can reach nothing else.

It opens no file and no connection, loads no extension, spills nothing to disk, and its configuration is locked before
the first statement. That holds whatever `statement` lets through.
"""

from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa

from spark_jobs.engine.sketches import add_sketches
from spark_jobs.expressions import duckdb_session
from spark_jobs.query_server.refusal import Refusal

LOCKED = {
    "temp_directory": "''",
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "python_enable_replacements": "false",
    "lock_configuration": "true",
}
AT_ONCE = 10_000


def connect(memory_mb: int) -> duckdb.DuckDBPyConnection:
    con = duckdb_session.connect(threads=2)
    add_sketches(con)
    con.execute(f"SET memory_limit = '{memory_mb:d}MB'")
    for name, value in LOCKED.items():
        con.execute(f"SET {name} = {value}")
    return con


def rows(con: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any], most: int) -> pa.Table:
    """The rows of a SELECT. Refusal where the engine says no, or there are more than `most`."""
    try:
        answer = con.sql(sql, params=dict(values)) if values else con.sql(sql)
        kinds = [str(kind) for kind in answer.types]
        if "INTERVAL" in kinds:
            raise Refusal("refused", "a column is an INTERVAL: Spark has two kinds of them; ask for datediff")
        reader = answer.to_arrow_reader(AT_ONCE)
        batches, count = [], 0
        for batch in reader:
            count += batch.num_rows
            if count > most:
                raise Refusal("too_large", f"more than {most:,} rows: TIDEMARK_QUERY_ROWS is the limit; add a LIMIT")
            batches.append(batch)
        return _as_in_spark(pa.Table.from_batches(batches, reader.schema), kinds)
    except duckdb.OutOfMemoryException as error:
        limit = "TIDEMARK_QUERY_MEMORY_MB is the limit; `--engine spark` spills to disk"
        raise Refusal("out_of_memory", f"the statement needs more memory than it may have: {limit}") from error
    except (duckdb.Error, pa.ArrowInvalid) as error:
        raise Refusal("failed", str(error).partition("\n\n")[0].replace("\n", " ")) from error


def columns(con: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, Any]) -> pa.Schema:
    """Those that the rows of a SELECT would have. Refusal where the engine says no."""
    shape = rows(con, f"SELECT * FROM ({sql}) LIMIT 0", values, 0).schema
    try:
        names = con.sql(sql, params=dict(values)).columns if values else con.sql(sql).columns
    except duckdb.Error as error:
        raise Refusal("failed", str(error)) from error
    return pa.schema([field.with_name(name) for field, name in zip(shape, names, strict=True)])


def _as_in_spark(table: pa.Table, kinds: list[str]) -> pa.Table:
    """Sums of integers are BIGINT there, and a greater one is an error."""
    for number, kind in enumerate(kinds):
        if kind == "HUGEINT":
            field = table.schema.field(number)
            table = table.set_column(number, field.with_type(pa.int64()), table[number].cast(pa.int64()))
    return table
