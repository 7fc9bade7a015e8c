"""The measures of an Aggregate: what is stored, how it merges, what is served.

facts --make--> partial columns --merge--> fewer rows of the same columns --final--> the answer.
`merge` is associative and commutative, and a partial merged with nothing is itself: tests/laws/test_measures.py.
Templates: `[name]` is a quoted column, `{x}` the measured value, `{f}` its FILTER clause or nothing.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import pyarrow as pa

from spark_jobs import variance
from spark_jobs.dialect import Dialect, Sql
from spark_jobs.expressions import Kind, arrow_of, spark_of
from spark_jobs.parts import ORDER, SPARK_ORDER, MeasureError, Part

LG_K = 12


@dataclass(frozen=True)
class Measure:
    """of: the measured expression. where: only facts for which it is true. tolerance: for floating values."""

    of: str | None = None
    where: str | None = None
    tolerance: float | None = None

    joins_key: ClassVar[bool] = False  # the value, as `keyed`, becomes a key of the partial: column <name>__value
    keyed: ClassVar[Sql] = "{x}"
    order: ClassVar[Literal["first", "last"] | None] = None
    limit: ClassVar[int | None] = None  # integers beyond +-limit make the fact a reject of the view
    answers: ClassVar[Kind | None] = "BIGINT"  # the kind that is served; None: that of the value

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        raise NotImplementedError

    def final(self, name: str, kind: Kind | None) -> Sql:
        """The served value, over the merged partial columns."""
        return f"[{name}]"

    def ranked(self, name: str) -> dict[str, str]:
        """Where the value is a key: columns beside each stored row, over those with the same keys `{by}`."""
        return {}

    def collected(self, name: str) -> str:
        """Where the value is a key: the answer, over the stored rows of the other keys."""
        return f"count(DISTINCT [{name}__value])"

    def order_column(self, name: str) -> str:
        """Measures without a filter share one stored order per view."""
        return f"{name}__{self.order}" if self.where else f"event__{self.order}"


def _part(column: str, kind: Kind, make: Sql, merge: Sql) -> Part:
    return Part(column, arrow_of(kind), spark_of(kind), make, merge)


# Exact sums are DECIMAL(38,0), so that no fact can overflow one; they are narrowed when served.
_WIDE, _WIDE_ARROW = "DECIMAL(38,0)", pa.decimal128(38, 0)


def _needs_value(kind: Kind | None, measure: Measure) -> Kind:
    if kind is None:
        raise MeasureError(f"{type(measure).__name__} measures nothing", 'say of what: Sum("quantity")')
    return kind


def _number(kind: Kind | None, measure: Measure) -> Kind:
    kind = _needs_value(kind, measure)
    if kind not in ("BIGINT", "DOUBLE"):
        raise MeasureError(f"{type(measure).__name__} of a {kind}", "measure a number, or CAST it to BIGINT")
    if kind == "DOUBLE" and measure.tolerance is None:
        raise MeasureError(
            f"{type(measure).__name__} of a DOUBLE without tolerance",
            "sums of floats depend on their order: measure integers (cents, metres), or state tolerance=1e-9",
        )
    return kind


def _sum_part(column: str, kind: Kind, value: str, spark_value: str | None = None) -> Part:
    if kind == "DOUBLE":
        return _part(column, kind, f"sum({value}){{f}}", f"sum([{column}])")
    make = {
        Dialect.DUCKDB: f"CAST(sum({value}){{f}} AS {_WIDE})",
        Dialect.SPARK: f"CAST(sum(CAST({spark_value or value} AS {_WIDE})){{f}} AS {_WIDE})",
    }
    return Part(column, _WIDE_ARROW, _WIDE, make, f"CAST(sum([{column}]) AS {_WIDE})")


def _count_part(column: str, counted: str) -> Part:
    return _part(column, "BIGINT", f"count({counted}){{f}}", f"CAST(sum([{column}]) AS BIGINT)")


@dataclass(frozen=True)
class Count(Measure):
    """Number of facts, or of those whose `of` is not null."""

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        return [_count_part(name, "*" if kind is None else "{x}")]


@dataclass(frozen=True)
class Sum(Measure):
    """Exact sum; of BIGINTs served as BIGINT, and as NULL where it does not fit one."""

    answers: ClassVar[Kind | None] = None

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        return [_sum_part(name, _number(kind, self), "{x}")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"try_cast([{name}] AS BIGINT)" if kind == "BIGINT" else f"[{name}]"


@dataclass(frozen=True)
class Min(Measure):
    """Least value; nulls are left out."""

    answers: ClassVar[Kind | None] = None

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        return [_part(name, _needs_value(kind, self), "min({x}){f}", f"min([{name}])")]


@dataclass(frozen=True)
class Max(Measure):
    """Greatest value; nulls are left out."""

    answers: ClassVar[Kind | None] = None

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        return [_part(name, _needs_value(kind, self), "max({x}){f}", f"max([{name}])")]


@dataclass(frozen=True)
class Mean(Measure):
    """Arithmetic mean of the values that are not null, a DOUBLE; stored as exact sum and count."""

    answers: ClassVar[Kind | None] = "DOUBLE"

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        return [_sum_part(f"{name}__sum", _number(kind, self), "{x}"), _count_part(f"{name}__count", "{x}")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"CAST([{name}__sum] AS DOUBLE) / nullif(CAST([{name}__count] AS DOUBLE), 0)"


@dataclass(frozen=True)
class Variance(Measure):
    """Sample variance, a DOUBLE; NULL for fewer than two values. Integers up to 10^12 in size are summed exactly."""

    answers: ClassVar[Kind | None] = "DOUBLE"
    limit: ClassVar[int | None] = variance.LIMIT

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        kind = _number(kind, self)
        square = dict.fromkeys(Dialect, "{x} * {x}") if kind == "DOUBLE" else variance.SQUARE
        return [
            _count_part(f"{name}__count", "{x}"),
            _sum_part(f"{name}__sum", kind, "{x}"),
            _sum_part(f"{name}__squares", kind, square[Dialect.DUCKDB], square[Dialect.SPARK]),
        ]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return variance.answer(name, "DOUBLE" if kind == "DOUBLE" else _WIDE)


@dataclass(frozen=True)
class StdDev(Variance):
    """Square root of the sample variance."""

    def final(self, name: str, kind: Kind | None) -> Sql:
        return f"sqrt({super().final(name, kind)})"


@dataclass(frozen=True)
class Last(Measure):
    """The value of the last fact (nulls count) by occurred_at, topic, partition, offset; of changelogs, by position.

    Over a compacted topic the row of a key disappears when its last fact is a tombstone.
    """

    answers: ClassVar[Kind | None] = None
    order: ClassVar[Literal["first", "last"] | None] = "last"

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        kind = _needs_value(kind, self)
        by = self.order_column(name)
        duckdb, spark = ("arg_max_null", "max_by") if self.order == "last" else ("arg_min_null", "min_by")
        make = {
            Dialect.DUCKDB: f"{duckdb}({{x}}, event__order){{f}}",
            Dialect.SPARK: f"{spark}({{x}}, event__order){{f}}",
        }
        merge = {Dialect.DUCKDB: f"{duckdb}([{name}], [{by}])", Dialect.SPARK: f"{spark}([{name}], [{by}])"}
        extreme = "max" if self.order == "last" else "min"
        order = Part(by, ORDER, SPARK_ORDER, f"{extreme}(event__order){{f}}", f"{extreme}([{by}])")
        return [_part(name, kind, make, merge), order]


@dataclass(frozen=True)
class First(Last):
    """The value of the first fact, in the order of `Last`."""

    order: ClassVar[Literal["first", "last"] | None] = "first"


@dataclass(frozen=True)
class CountDistinct(Measure):
    """Exact number of distinct values: the value joins the key of the stored partials, so mind their number."""

    joins_key: ClassVar[bool] = True

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        _needs_value(kind, self)
        return []


@dataclass(frozen=True)
class ApproxDistinct(Measure):
    """About how many distinct values (HyperLogLog, standard error 1.6 %): Apache DataSketches HLL_8, lgK 12.

    The estimate is taken from the sketch's union with itself, because the plain one depends on the order of merges.
    """

    def parts(self, name: str, kind: Kind | None) -> list[Part]:
        if _needs_value(kind, self) not in ("BIGINT", "STRING"):
            raise MeasureError(f"ApproxDistinct of a {kind}", "CAST it to STRING or BIGINT")
        make = {Dialect.DUCKDB: "list(DISTINCT {x}){f}", Dialect.SPARK: f"hll_sketch_agg({{x}}, {LG_K}){{f}}"}
        merge = {Dialect.DUCKDB: f"hll_union_all(list([{name}]))", Dialect.SPARK: f"hll_union_agg([{name}], false)"}
        return [Part(name, pa.binary(), "BINARY", make, merge, finish="hll")]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return {
            Dialect.DUCKDB: f"hll_estimate([{name}])",
            Dialect.SPARK: f"hll_sketch_estimate(hll_union([{name}], [{name}]))",
        }
