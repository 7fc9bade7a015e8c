"""The positive list. docs/expressions.md explains each operation; the law `test_expressions_agree` runs each one."""

from spark_jobs.expressions.operations.cast import CASTS
from spark_jobs.expressions.operations.instant import INSTANT
from spark_jobs.expressions.operations.numeric import COMPARISON, NUMERIC
from spark_jobs.expressions.operations.operation import Operation, Table
from spark_jobs.expressions.operations.text import TEXT

OPERATIONS: Table = NUMERIC | COMPARISON | TEXT | INSTANT

__all__ = ["CASTS", "OPERATIONS", "Operation", "Table"]
