"""Expressions of view definitions: written once, the same answer in Spark and in DuckDB.

text (subset of Spark SQL) -> sqlglot -> typed tree (positive list) -> SQL for Spark, SQL for DuckDB -> bound in DuckDB

The subset, with the exact meaning of each function, is documented in `docs/expressions.md`.
Try one: `python -m spark_jobs.expressions "quantity * 2" quantity=BIGINT`.
"""

from spark_jobs.expressions.error import ExpressionError
from spark_jobs.expressions.expression import Expression, parse
from spark_jobs.expressions.kinds import KINDS, Kind, arrow_of, columns_of, duckdb_of, kind_of, spark_of
from spark_jobs.expressions.render import quote_text

__all__ = [
    "KINDS",
    "Expression",
    "ExpressionError",
    "Kind",
    "arrow_of",
    "columns_of",
    "duckdb_of",
    "kind_of",
    "parse",
    "quote_text",
    "spark_of",
]
