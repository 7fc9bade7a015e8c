"""Sample variance from exact sums: count, sum and sum of squares of integers up to 10^12 in size.

state columns <name>__count, <name>__sum, <name>__squares -> SQL of the variance, in either dialect.
"""

from dataclasses import dataclass
from typing import ClassVar

from spark_jobs.definitions.measures.base import WIDE, Measure, StateColumn, count_column, number_kind, sum_column
from spark_jobs.expressions.dialect import Dialect, Sql
from spark_jobs.expressions.kinds import Kind

LIMIT = 10**12

# 10^24 is beyond a BIGINT, and DuckDB multiplies narrow decimals within 18 digits.
SQUARE = {
    Dialect.DUCKDB: "CAST({x} AS HUGEINT) * CAST({x} AS HUGEINT)",
    Dialect.SPARK: "CAST({x} AS DECIMAL(13,0)) * CAST({x} AS DECIMAL(13,0))",
}


def _variance(name: str, wide: str) -> str:
    """SQL of the variance; `wide` is the type of the sums.

    With any q near the mean: sum((x-q)^2) = squares - q(2 sum - n q), exact; then minus (sum - n q)^2 / n.

    q = round(mean) keeps the first term at least twice the second, so nothing cancels.
    """
    n, total, squares = (f"CAST([{name}__{part}] AS {wide})" for part in ("count", "sum", "squares"))
    count = f"CAST([{name}__count] AS DOUBLE)"
    q = f"CAST(round(CAST([{name}__sum] AS DOUBLE) / nullif({count}, 0)) AS {wide})"
    shifted = f"CAST({squares} - {q} * ({total} + {total} - {n} * {q}) AS DOUBLE)"
    rest = f"CAST({total} - {n} * {q} AS DOUBLE)"
    return f"({shifted} - {rest} * {rest} / nullif({count}, 0)) / nullif({count} - 1, 0)"


@dataclass(frozen=True)
class Variance(Measure):
    """Sample variance, a DOUBLE; NULL for fewer than two values. Integers up to 10^12 in size are summed exactly."""

    answers: ClassVar[Kind | None] = "DOUBLE"
    limit: ClassVar[int | None] = LIMIT

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        kind = number_kind(kind, self)
        square = dict.fromkeys(Dialect, "{x} * {x}") if kind == "DOUBLE" else SQUARE
        return [
            count_column(f"{name}__count", "{x}"),
            sum_column(f"{name}__sum", kind, "{x}"),
            sum_column(f"{name}__squares", kind, square[Dialect.DUCKDB], square[Dialect.SPARK]),
        ]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return _variance(name, "DOUBLE" if kind == "DOUBLE" else WIDE)


@dataclass(frozen=True)
class StdDev(Variance):
    """Square root of the sample variance."""

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"sqrt({super().final(name, kind)})"
