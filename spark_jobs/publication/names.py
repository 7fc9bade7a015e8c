"""Names of tables in the catalog, for readers: the platform itself makes and reads its tables by their paths."""

from collections.abc import Callable
from typing import Any

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.expressions.dialect import Dialect, quote_text
from spark_jobs.ledger.schema import MIRRORED
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables

Execute = Callable[[str], list[Any]]
"""Runs one statement; returns its rows."""


def ensure_named(execute: Execute, views: Views) -> list[str]:
    """See to it that the catalog has the schemas, and names for the tables, which are made without it.

    Returns the tables that had no name.
    """
    there = {row[0] for row in execute("SHOW SCHEMAS")}
    for schema in tables.SCHEMAS:
        if schema not in there:
            execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    wanted = [tables.MASTER_LOG, tables.SPEED_PARTIALS, tables.QUARANTINE, tables.DUPLICATES, tables.VIEW_REJECTS]
    wanted += [*map(tables.facts, project_contracts().event_types), *(table for view in views for table in view.tables)]
    wanted += map(tables.ops, MIRRORED)
    schemas = sorted({table.split(".")[0] for table in wanted})
    known = {f"{schema}.{row[1]}" for schema in schemas for row in execute(f"SHOW TABLES IN {schema}")}
    new = [table for table in wanted if table not in known and duckdb_reader.exists(table)]
    for table in new:
        at = quote_text(tables.path(table), Dialect.SPARK)
        execute(f"CREATE TABLE IF NOT EXISTS {table} USING delta LOCATION {at}")
    return new


def serving_views(execute: Execute, schema: str) -> set[str]:
    """Names of the views in a schema."""
    return {row[1] for row in execute(f"SHOW VIEWS IN {schema}")}
