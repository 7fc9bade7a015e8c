"""The tables of builds: create one, know the files of a version, and write the next version.

A batch table has one writer: the active run, held to it by `committing`. A version goes on from the one that is
published, whatever lies above it.
"""

from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.settings import settings
from spark_jobs.storage import data_files, ddl, duckdb_reader, tables
from spark_jobs.storage.data_files import Committing, Written


def create(table: str, schema: pa.Schema) -> None:
    """Create a batch table, unless it exists; one that does gets the properties that it has today.

    Delta refuses time travel past the two retention properties, so they are the longest promise; what is not needed
    any more is removed by `tidemark retention` alone.
    """
    kept = f"interval {settings().history_days} days"
    retained = {"delta.deletedFileRetentionDuration": kept, "delta.logRetentionDuration": kept}
    properties = {**retained, **ddl.READ_AT_VERSIONS}
    ddl.create(table, schema, properties=properties)
    ddl.keep_properties(table, properties)


def files(table: str, version: int | None = None) -> list[dict[str, Any]]:
    """The flat add actions of a version (None: the newest)."""
    added = DeltaTable(tables.path(table), version=version).get_add_actions(flatten=True)
    actions: list[dict[str, Any]] = pa.table(added).to_pylist()
    return actions


def overwrite(table: str, written: Iterable[Written], committing: Committing) -> int:
    """A version with these files alone; returns it."""
    data_files.commit(tables.path(table), written, "overwrite", committing)
    return duckdb_reader.version(table)


def swap(table: str, removed: Collection[str], written: Collection[Written], base: int, committing: Committing) -> int:
    """Version `base` with files in the place of those that are removed (their paths); returns the new version."""
    read = DeltaTable(tables.path(table))
    if read.version() != base:  # what an unpublished run left on top must not stay
        with committing(read) as properties:
            read.restore(base, commit_properties=properties)
        read = DeltaTable(tables.path(table))
    if removed or written:
        data_files.swap(read, removed, written, committing)
    return duckdb_reader.version(table)
