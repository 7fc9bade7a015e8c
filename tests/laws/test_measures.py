"""The laws of measures: however facts are divided, ordered and merged, the answer is that of the oracle.

A seed makes 1,500 cases at once: the case is the view's key, an lsn is one part of its facts. All measures with and
without a filter are in one view, so that each law is one query. Oracles are plain Python over exact fractions.
"""

import math
from typing import Any

import pytest
from hypothesis import given, settings

from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.measures.base import Measure, StateColumn
from spark_jobs.definitions.measures.exact import CountDistinct, Last, Mean, Variance
from spark_jobs.engine import aggregates
from spark_jobs.engine.sketches import estimate
from spark_jobs.expressions.dialect import listed
from spark_jobs.expressions.kinds import Kind
from tests.depth import examples
from tests.laws.measured import ALL, DISTINCT, ORACLES, D, World, mean, oracle_differs, seeds, variance, view_of, world


@pytest.mark.parametrize("view", [ALL, DISTINCT], ids=["all", "distinct"])
@given(seed=seeds)
@settings(max_examples=examples(2))
def test_partials_of_any_division_merge_to_the_answer_of_the_oracle(view: AggregateView, seed: int) -> None:
    made = world(view, seed)
    assert not oracle_differs(made, made.answer("parts"))[:3]
    assert not oracle_differs(made, made.answer("whole"))[:3]


def stored_differ(made: World, one: str, other: str) -> list[Any]:
    """Pairs of rows that differ: sketches are compared by their estimate, floats to nine digits."""
    rows = [
        made.con.sql(f"SELECT {listed(made.view.partial_schema.names, D)} FROM ({sql}) ORDER BY case_id").fetchall()
        for sql in (one, other)
    ]
    return [pair for pair in zip(*rows, strict=True) if not all(map(_same_stored, *pair))]


def _same_stored(one: Any, other: Any) -> bool:
    if isinstance(one, bytes):
        return estimate(one) == estimate(other)
    if isinstance(one, float) and other is not None:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


@given(seed=seeds)
@settings(max_examples=examples(2))
def test_merge_is_associative_and_commutative(seed: int) -> None:
    made = world(ALL, seed)
    merged = aggregates.merged(ALL, D, "parts")
    left = aggregates.merged(ALL, D, "(FROM parts WHERE lsn <= 2)")
    right = aggregates.merged(ALL, D, "(FROM parts WHERE lsn > 2)")
    assert not stored_differ(made, aggregates.merged(ALL, D, f"(({left}) UNION ALL ({right}))"), merged)
    assert not stored_differ(made, aggregates.merged(ALL, D, f"(({right}) UNION ALL ({left}))"), merged)


@given(seed=seeds)
@settings(max_examples=examples(2))
def test_a_partial_merged_with_nothing_is_itself(seed: int) -> None:
    made = world(ALL, seed)
    assert not stored_differ(made, aggregates.merged(ALL, D, "whole"), "FROM whole")


# --- the laws can see -----------------------------------------------------------------------------------------------
class MeanOfMeans(Mean):
    """Wrong: stores the mean itself."""

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [StateColumn(name, "DOUBLE", "avg({x}){f}", f"avg([{name}])")]

    def final(self, name: str, kind: Kind | None) -> str:
        return f"[{name}]"


class SumOfDistinctCounts(CountDistinct):
    """Wrong: counts the distinct values of each part."""

    joins_key = False

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        return [StateColumn(name, "BIGINT", "count(DISTINCT {x}){f}", f"CAST(sum([{name}]) AS BIGINT)")]


class NaiveVariance(Variance):
    """Wrong: mean of squares minus square of mean, in floating point."""

    def final(self, name: str, kind: Kind | None) -> str:
        n, total, squares = (f"CAST([{name}__{part}] AS DOUBLE)" for part in ("count", "sum", "squares"))
        return f"({squares} - {total} * {total} / nullif({n}, 0)) / nullif({n} - 1, 0)"


ORACLES |= {MeanOfMeans: mean, NaiveVariance: variance, SumOfDistinctCounts: lambda values: len(set(values))}


@pytest.mark.parametrize("broken", [MeanOfMeans("n"), SumOfDistinctCounts("n"), NaiveVariance("n")], ids=repr)
def test_the_laws_catch_a_broken_measure(broken: Measure) -> None:
    made = world(view_of({"broken": broken}), 1)
    assert oracle_differs(made, made.answer("parts"))


def test_the_laws_catch_a_last_by_arrival() -> None:
    made = world(view_of({"broken": Last("n")}), 1)
    by_arrival = 'struct_pack(at := lsn, topic := \'\', "partition" := 0, "offset" := 0)'
    swapped = made.con.sql(f"SELECT * REPLACE ({by_arrival} AS event__last) FROM parts")
    made.con.register("swapped", swapped.to_arrow_table())
    assert oracle_differs(made, made.answer("swapped"))
