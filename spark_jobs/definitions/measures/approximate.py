"""Approximate measures: distinct values by a sketch, quantiles by buckets that every engine has alike.

ApproxDistinct: values -> HyperLogLog sketch --merged--> estimate.
ApproxQuantile: integers --bucket--> a key of the stored partial, with a count --merged--> ranked --> the quantile.
Sketches of quantiles, such as KLL and t-digest, depend on the order of merges or on chance, so two engines never give
the same bytes; buckets are integers. They are those of a high dynamic range histogram (G. Tene, HdrHistogram): exact
below 2^7, then 64 of one width for each doubling, so that a bucket's middle is off by at most 1/128 of the value.
"""

from dataclasses import dataclass
from typing import ClassVar

from spark_jobs.definitions.measures.base import Measure, StateColumn, value_kind
from spark_jobs.expressions.dialect import Dialect, Sql
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind

LG_K = 12


@dataclass(frozen=True)
class ApproxDistinct(Measure):
    """About how many distinct values (HyperLogLog, standard error 1.6 %): Apache DataSketches HLL_8, lgK 12.

    The estimate is taken from the sketch's union with itself, because the plain one depends on the order of merges.
    """

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        if value_kind(kind, self) not in ("BIGINT", "STRING"):
            raise Refused(f"ApproxDistinct of a {kind}", "CAST it to STRING or BIGINT")
        make = {Dialect.DUCKDB: "list(DISTINCT {x}){f}", Dialect.SPARK: f"hll_sketch_agg({{x}}, {LG_K}){{f}}"}
        merge = {Dialect.DUCKDB: f"hll_union_all(list([{name}]))", Dialect.SPARK: f"hll_union_agg([{name}], false)"}
        return [StateColumn(name, "SKETCH", make, merge)]

    def final(self, name: str, kind: Kind | None) -> Sql:
        return {
            Dialect.DUCKDB: f"hll_estimate([{name}])",
            Dialect.SPARK: f"hll_sketch_estimate(hll_union([{name}], [{name}]))",
        }


def _bucket(up: str, down: str, one: str) -> str:
    """SQL of the middle of the bucket of `{x}`. -2^63 has no absolute value, and stays as it is."""
    shift = "(length(bin(abs({x}))) - 7)"
    middle = f"{up.format(down.format('abs({x})', shift), shift)} + {up.format(one, f'({shift} - 1)')}"
    whole = f"CASE WHEN {{x}} < 0 THEN -({middle}) ELSE {middle} END"
    sized = f"CASE WHEN abs({{x}}) >= 128 THEN {whole} ELSE {{x}} END"
    return f"CASE WHEN {{x}} >= {-(2**63) + 1} THEN {sized} ELSE {{x}} END"


@dataclass(frozen=True)
class ApproxQuantile(Measure):
    """About the least integer that a share `q` of the values does not exceed, off by at most 1/128 of it.

    q: from 0 (the least value) to 1 (the greatest). Nulls are left out. Each bucket that is met is a stored row, at
    most some hundreds per key.
    """

    q: float = 0.5

    joins_key = True
    keyed: ClassVar[Sql] = {
        Dialect.DUCKDB: _bucket("({0} << {1})", "({0} >> {1})", "CAST(1 AS BIGINT)"),
        Dialect.SPARK: _bucket("shiftleft({0}, {1})", "shiftright({0}, {1})", "1L"),
    }

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        if kind != "BIGINT":
            raise Refused(f"ApproxQuantile of {kind or 'nothing'}", "measure integers: cents, milliseconds, metres")
        if not 0 <= self.q <= 1:
            raise Refused(f"the quantile {self.q}", "write a share of the values, from 0 to 1: q=0.95")
        count = f"{name}__count"
        return [StateColumn(count, "BIGINT", f"count([{name}__value])", f"CAST(sum([{count}]) AS BIGINT)")]

    def ranked(self, name: str) -> dict[str, str]:
        """How many values lie in this bucket and those below it, and how many there are."""
        counted = f"sum([{name}__count]) OVER (PARTITION BY {{by}}"
        return {f"{name}__upto": f"{counted} ORDER BY [{name}__value])", f"{name}__all": f"{counted})"}

    def collected(self, name: str) -> str:
        enough = f"CAST([{name}__upto] AS DOUBLE) >= {self.q!r} * CAST([{name}__all] AS DOUBLE)"
        return f"min(CASE WHEN [{name}__count] > 0 AND {enough} THEN [{name}__value] END)"
