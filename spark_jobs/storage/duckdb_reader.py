"""Read the platform's Delta tables without a JVM: each as a relation of a DuckDB connection.

table name, version -> delta-rs -> Arrow dataset -> DuckDB. Readers only: every table has its one writer elsewhere.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyarrow.fs import FileSelector, FileSystem

from spark_jobs.engine.sketches import add_sketches
from spark_jobs.expressions import duckdb_session
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.settings import settings
from spark_jobs.storage import tables
from spark_jobs.storage.data_files import Bounds, files_within

Table = str | tuple[str, int | None]
"""A table's name, alone (its newest version) or with a version."""
GROUP = "16MB"
"""Of rows of a file that is written; DuckDB's own groups have 122,880 rows, of whatever size."""


class NoTable(LookupError):
    """A table that was never written, or a version of it that is gone."""


def exists(table: str) -> bool:
    return bool(DeltaTable.is_deltatable(tables.path(table)))


def tables_of(schema: str) -> list[str]:
    """The names of the tables that the warehouse has in a schema."""
    fs, folder = FileSystem.from_uri(f"{settings().warehouse}/{schema}.db")
    folders = (info for info in fs.get_file_info(FileSelector(folder, allow_not_found=True)) if not info.is_file)
    return sorted(info.base_name for info in folders if exists(f"{schema}.{info.base_name}"))


def _refuse_absent(table: str) -> None:
    if not exists(table):
        raise NoTable(f"{table} does not exist yet under {tables.path(table)}")


def version(table: str) -> int:
    """The newest version of a table. Raises NoTable."""
    _refuse_absent(table)
    return int(DeltaTable(tables.path(table)).version())


def row_count(table: str, at: int | None = None) -> int:
    """Rows of a version (None: the newest), from its file statistics; 0 where there is no table."""
    if not exists(table):
        return 0
    files = pa.table(DeltaTable(tables.path(table), version=at).get_add_actions())
    return int(pc.sum(files["num_records"]).as_py() or 0)


def dataset(table: Table) -> ds.Dataset:
    """One consistent snapshot of a table. Raises NoTable."""
    name, at = (table, None) if isinstance(table, str) else table
    _refuse_absent(name)
    try:
        delta = DeltaTable(tables.path(name), version=at)
        return _with_what_is_known(delta, delta.to_pyarrow_dataset())
    except Exception as error:  # delta-rs raises a class of its own per cause
        raise NoTable(f"{name} at version {at} cannot be read: {error}") from error


def within(table: str, bounds: Bounds, loaded: DeltaTable | None = None) -> ds.Dataset:
    """The files of a table that can hold rows in the bounds, without its partition column; the others cost nothing.

    loaded: the table, for whoever has it already, as a load takes the longest. Raises NoTable.
    """
    if loaded is None:
        _refuse_absent(table)
        loaded = DeltaTable(tables.path(table))
    files, base = FileSystem.from_uri(tables.path(table))
    paths = [f"{base}/{unquote(path)}" for path in files_within(loaded, bounds)["path"].to_pylist()]
    return ds.dataset(paths, schema=pa.schema(loaded.schema()), format="parquet", filesystem=files)


def _with_what_is_known(table: DeltaTable, files: ds.FileSystemDataset) -> ds.Dataset:
    """The same files, each with its partition and the least and greatest values that Delta knows.

    delta-rs (1.6) calls a column without statistics `>= null`, and then a filter on it matches nothing.
    """
    actions = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    known = {action["path"]: _known(action, files.schema.names) for action in actions}
    fragments = [
        files.format.make_fragment(file.path, files.filesystem, known[file.path]) for file in files.get_fragments()
    ]
    return ds.FileSystemDataset(fragments, files.schema, files.format, files.filesystem)


def _known(action: Mapping[str, Any], columns: Iterable[str]) -> pc.Expression:
    """What holds for each row of a file. A column that may be null has no bounds here.

    Delta cuts instants to milliseconds, so the greatest one may lie up to one above what it says.
    """
    guarantee = pc.scalar(True)
    for name in columns:
        column, least, most = ds.field(name), action.get(f"min.{name}"), action.get(f"max.{name}")
        if f"partition.{name}" in action:
            value = action[f"partition.{name}"]
            guarantee &= column.is_null() if value is None else column == pa.scalar(value)
        elif least is not None and most is not None and action.get(f"null_count.{name}") == 0:
            above = most + timedelta(milliseconds=1) if isinstance(most, datetime) else most
            guarantee &= (column >= pa.scalar(least)) & (column <= pa.scalar(above))
    return guarantee


@cache
def of_task() -> duckdb.DuckDBPyConnection:
    """The connection of a Spark task's process: one thread, and disk for what its memory does not hold."""
    con = duckdb_session.connect()
    add_sketches(con)
    con.execute("SET allocator_background_threads = true")  # else the process keeps what dropped tables held
    _bound(con, settings().task_memory_mb)
    return con


def _bound(con: duckdb.DuckDBPyConnection, memory_mb: int) -> None:
    """Have it use the disk for what exceeds its memory."""
    folder = settings().tmp_dir / "duckdb"
    folder.parent.mkdir(parents=True, exist_ok=True)  # DuckDB makes the last folder alone
    con.execute(f"SET memory_limit = '{memory_mb:d}MB'")
    con.execute(f"SET temp_directory = {quote_text(str(folder), Dialect.DUCKDB)}")


def drop(con: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Free what a task's temporary tables hold: its connection outlives it, and other work follows there."""
    for name in names:
        con.execute(f"DROP TABLE IF EXISTS {name}")


def connect(
    relations: Mapping[str, Table | pa.Table | ds.Dataset], *, sketches: bool = False
) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with one relation per name, and where asked the functions of sketches. Raises NoTable.

    What `check_memory_mb` does not hold is on disk.
    """
    con = duckdb_session.connect(threads=2)
    if sketches:
        add_sketches(con)
    con.execute("SET preserve_insertion_order = false")
    _bound(con, settings().check_memory_mb)
    for name, source in relations.items():
        con.register(name, source if isinstance(source, pa.Table | ds.Dataset) else dataset(source))
    return con


def copy(rows: duckdb.DuckDBPyRelation, to: duckdb.DuckDBPyConnection, name: str) -> None:
    """Make a temporary table of another connection of these rows, by and by: what memory does not hold is on disk."""
    to.register("copied", rows.to_arrow_reader())
    to.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM copied")
    to.unregister("copied")


def write_file(rows: str, con: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Write what a SELECT gives into a Parquet file. Memory holds a group: so many bytes, however long rows are."""
    to = quote_text(str(file), Dialect.DUCKDB)
    con.execute(f"COPY ({rows}) TO {to} (FORMAT parquet, ROW_GROUP_SIZE_BYTES '{GROUP}')")
