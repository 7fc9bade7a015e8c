"""Exact measures: counts, sums, extremes, means and variances, the first and the last value, distinct values.

The value of the row with the greatest of another value (MaxBy) is stored with that other value.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from spark_jobs.definitions.measures.base import (
    WIDE,
    Measure,
    StateColumn,
    count_column,
    number_kind,
    sum_column,
    value_kind,
)
from spark_jobs.expressions.dialect import Dialect, Sql
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind


@dataclass(frozen=True)
class Count(Measure):
    """Number of facts, or of those whose `of` is not null."""

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [count_column(name, "*" if kind is None else "{x}")]


@dataclass(frozen=True)
class Sum(Measure):
    """Exact sum; a sum of BIGINTs is served as BIGINT, or as NULL if it does not fit one."""

    answers = None

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [sum_column(name, number_kind(kind, self), "{x}")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"try_cast([{name}] AS BIGINT)" if kind == "BIGINT" else f"[{name}]"


@dataclass(frozen=True)
class Min(Measure):
    """Least value; nulls are left out."""

    answers = None
    extreme: ClassVar[str] = "min"

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [StateColumn(name, value_kind(kind, self), f"{self.extreme}({{x}}){{f}}", f"{self.extreme}([{name}])")]


@dataclass(frozen=True)
class Max(Min):
    """Greatest value; nulls are left out."""

    extreme = "max"


@dataclass(frozen=True)
class Mean(Measure):
    """Arithmetic mean of the values that are not null, a DOUBLE; stored as exact sum and count."""

    answers = "DOUBLE"

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [sum_column(f"{name}__sum", number_kind(kind, self), "{x}"), count_column(f"{name}__count", "{x}")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"CAST([{name}__sum] AS DOUBLE) / nullif(CAST([{name}__count] AS DOUBLE), 0)"


@dataclass(frozen=True)
class MinBy(Measure):
    """The value, of any kind, of the fact with the least `by`; facts whose `by` is null are left out.

    Of equal ones the least value is served, and a null only if none has a value; so the order of facts is nothing to
    it, and it may stand in a chained view.
    """

    by: str | None = None

    answers = None
    extreme: ClassVar[str] = "min"
    nulls_last: ClassVar[str] = "{x} IS NULL"  # of equal `by`, in the order of `extreme`

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        kind = value_kind(kind, self)
        if self.by is None:
            this = type(self).__name__
            raise Refused(f"{this} does not say by what", f'say whose {self.extreme}: {this}("colour", by="price")')
        by = f"{name}__by"
        make, merge = f"{self.extreme}({{o}}){{f}}", f"{self.extreme}([{by}])"
        return [
            StateColumn(name, kind, self._picked("{x}", "{o}", "{f}"), self._picked(f"[{name}]", f"[{by}]", "")),
            StateColumn(by, "BY", make, merge),
        ]

    def _picked(self, x: str, o: str, f: str) -> Sql:
        """The engines rank nulls within a pair differently, so a flag stands before the value."""
        pair = f"{o}, {self.nulls_last.format(x=x)}, {x}"
        return {
            Dialect.DUCKDB: f"arg_{self.extreme}_null({x}, CASE WHEN {o} IS NOT NULL THEN row({pair}) END){f}",
            Dialect.SPARK: f"{self.extreme}_by({x}, CASE WHEN {o} IS NOT NULL THEN struct({pair}) END){f}",
        }


@dataclass(frozen=True)
class MaxBy(MinBy):
    """The value, of any kind, of the fact with the greatest `by`; of equal ones the greatest value, see MinBy."""

    extreme = "max"
    nulls_last = "{x} IS NOT NULL"


# 10^24 is beyond a BIGINT, and DuckDB multiplies narrow decimals within 18 digits.
_SQUARE = {
    Dialect.DUCKDB: "CAST({x} AS HUGEINT) * CAST({x} AS HUGEINT)",
    Dialect.SPARK: "CAST({x} AS DECIMAL(13,0)) * CAST({x} AS DECIMAL(13,0))",
}


@dataclass(frozen=True)
class Variance(Measure):
    """Sample variance, a DOUBLE; NULL for fewer than two values. Integers up to 10^12 in size are summed exactly."""

    answers = "DOUBLE"
    limit = 10**12

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        kind = number_kind(kind, self)
        square = dict.fromkeys(Dialect, "{x} * {x}") if kind == "DOUBLE" else _SQUARE
        return [
            count_column(f"{name}__count", "{x}"),
            sum_column(f"{name}__sum", kind, "{x}"),
            sum_column(f"{name}__squares", kind, square[Dialect.DUCKDB], square[Dialect.SPARK]),
        ]

    def final(self, name: str, kind: Kind | None) -> str:
        """With any q near the mean: sum((x-q)^2) = squares - q(2 sum - n q), exact; then minus (sum - n q)^2 / n.

        q = round(mean) keeps the first term at least twice the second, so nothing cancels.
        """
        wide = "DOUBLE" if kind == "DOUBLE" else WIDE
        n, total, squares = (f"CAST([{name}__{part}] AS {wide})" for part in ("count", "sum", "squares"))
        count = f"CAST([{name}__count] AS DOUBLE)"
        q = f"CAST(round(CAST([{name}__sum] AS DOUBLE) / nullif({count}, 0)) AS {wide})"
        shifted = f"CAST({squares} - {q} * ({total} + {total} - {n} * {q}) AS DOUBLE)"
        rest = f"CAST({total} - {n} * {q} AS DOUBLE)"
        return f"({shifted} - {rest} * {rest} / nullif({count}, 0)) / nullif({count} - 1, 0)"


@dataclass(frozen=True)
class StdDev(Variance):
    """Square root of the sample variance."""

    def final(self, name: str, kind: Kind | None) -> str:
        return f"sqrt({super().final(name, kind)})"


@dataclass(frozen=True)
class Last(Measure):
    """The value of the last fact (nulls count) by occurred_at, topic, partition, offset; over a changelog, by position.

    Over a compacted topic the row of a key disappears when its last fact is a tombstone. Stored with its position.
    """

    answers = None
    order: ClassVar[Literal["first", "last"] | None] = "last"

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        extreme = "max" if self.order == "last" else "min"
        by = f"{name if self.where else 'event'}__{self.order}"  # without a filter: one order for the whole view
        pick = {Dialect.DUCKDB: f"arg_{extreme}_null", Dialect.SPARK: f"{extreme}_by"}
        make = {dialect: f"{function}({{x}}, event__order){{f}}" for dialect, function in pick.items()}
        merge = {dialect: f"{function}([{name}], [{by}])" for dialect, function in pick.items()}
        order = StateColumn(by, "POSITION", f"{extreme}(event__order){{f}}", f"{extreme}([{by}])")
        return [StateColumn(name, value_kind(kind, self), make, merge), order]


@dataclass(frozen=True)
class First(Last):
    """The value of the first fact, in the order of `Last`."""

    order = "first"


@dataclass(frozen=True)
class CountDistinct(Measure):
    """Exact number of distinct values: the value joins the key of the stored partials, so mind their number."""

    joins_key = True

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        value_kind(kind, self)
        return []
