"""Expressions of view definitions: written once, the same answer in Spark and in DuckDB.

text (subset of Spark SQL) -> sqlglot -> typed tree (positive list) -> SQL for Spark, SQL for DuckDB -> bound in DuckDB

`expression.parse` is the way in. The subset, with the exact meaning of each function, is in `docs/expressions.md`.
Try one: `python -m spark_jobs.expressions "quantity * 2" quantity=BIGINT`.
"""
