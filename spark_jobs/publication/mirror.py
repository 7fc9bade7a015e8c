"""Mirror the ledger to `ops.*`, so that SQL readers can ask for runs, publications, what was verified, and the rest.

rows of the ledger -> Arrow -> a Delta table per table, replaced in one version where a row has changed.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import JSON, Boolean, Column, Float, Integer, Text, select
from sqlalchemy.sql.type_api import TypeEngine

from spark_jobs.contracts.row_types import INSTANT
from spark_jobs.ledger.schema import MIRRORED, Base, Instant
from spark_jobs.ledger.store import Store
from spark_jobs.storage import ddl, tables
from spark_jobs.storage.vacuum import UNREAD_HOURS, vacuum

ARROW = {Instant: INSTANT, Boolean: pa.bool_(), Integer: pa.int64(), Float: pa.float64(), Text: pa.string()}


def mirror(store: Store) -> dict[str, int]:
    """Bring `ops.*` to what the ledger says now; the tables that changed, each with its rows."""
    changed = {}
    for name in MIRRORED:
        rows, table = _rows(store, name), tables.ops(name)
        ddl.create(table, rows.schema, properties=ddl.COMMITTED_OFTEN)
        at = tables.path(table)
        if not rows.equals(_mirrored(at, rows)):
            write_deltalake(at, rows, mode="overwrite", schema_mode="merge")
            changed[table] = rows.num_rows
        vacuum(at, UNREAD_HOURS)
    return changed


def _mirrored(at: str, like: pa.Table) -> pa.Table:
    """What the mirror has, in the order of the ledger's rows."""
    found = DeltaTable(at).to_pyarrow_table(columns=like.column_names).cast(like.schema)
    return found.combine_chunks()


def _rows(store: Store, name: str) -> pa.Table:
    """A table of the ledger by its primary key; JSON as text."""
    table = Base.metadata.tables[name]
    with store.read() as session:
        found = session.execute(select(table).order_by(*table.primary_key)).mappings().all()
    schema = pa.schema([(column.name, _kind(column.type)) for column in table.columns])
    return pa.Table.from_pylist([dict(_values(row, [*table.columns])) for row in found], schema)


def _values(row: Any, columns: list[Column[Any]]) -> Iterator[tuple[str, Any]]:
    for column in columns:
        value = row[column.name]
        yield column.name, json.dumps(value) if isinstance(column.type, JSON) and value is not None else value


def _kind(type_: TypeEngine[Any]) -> pa.DataType:
    return next((arrow for kind, arrow in ARROW.items() if isinstance(type_, kind)), pa.string())
