"""Queries of sequence views: `resolve`, written once, the same rows in Spark and in DuckDB.

text + columns of {rows} -> sqlglot -> typed query (positive list) -> SQL for Spark, SQL for DuckDB -> bound in DuckDB

Shapes, functions and orders that a query may have, and why, are in `docs/expressions.md`.
"""
