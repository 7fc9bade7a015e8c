"""Distinct values: counted exactly, as a further key, or about, by a HyperLogLog sketch."""

from dataclasses import dataclass
from typing import ClassVar

from spark_jobs.definitions.measures.base import Measure, MeasureError, StateColumn, value_kind
from spark_jobs.expressions.dialect import Dialect, Sql
from spark_jobs.expressions.kinds import Kind

LG_K = 12


@dataclass(frozen=True)
class CountDistinct(Measure):
    """Exact number of distinct values: the value joins the key of the stored partials, so mind their number."""

    joins_key: ClassVar[bool] = True

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        value_kind(kind, self)
        return []


@dataclass(frozen=True)
class ApproxDistinct(Measure):
    """About how many distinct values (HyperLogLog, standard error 1.6 %): Apache DataSketches HLL_8, lgK 12.

    The estimate is taken from the sketch's union with itself, because the plain one depends on the order of merges.
    """

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        if value_kind(kind, self) not in ("BIGINT", "STRING"):
            raise MeasureError(f"ApproxDistinct of a {kind}", "CAST it to STRING or BIGINT")
        make = {Dialect.DUCKDB: "list(DISTINCT {x}){f}", Dialect.SPARK: f"hll_sketch_agg({{x}}, {LG_K}){{f}}"}
        merge = {Dialect.DUCKDB: f"hll_union_all(list([{name}]))", Dialect.SPARK: f"hll_union_agg([{name}], false)"}
        return [StateColumn(name, "SKETCH", make, merge)]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return {
            Dialect.DUCKDB: f"hll_estimate([{name}])",
            Dialect.SPARK: f"hll_sketch_estimate(hll_union([{name}], [{name}]))",
        }
