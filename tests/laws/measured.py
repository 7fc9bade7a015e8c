"""Random facts, a view of every measure over them, and an oracle that shares no code with the measures."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.event_columns import EventColumns
from spark_jobs.definitions.measures.approximate import ApproxDistinct, ApproxQuantile
from spark_jobs.definitions.measures.base import Measure
from spark_jobs.definitions.measures.exact import (
    Count,
    CountDistinct,
    First,
    Last,
    Max,
    MaxBy,
    Mean,
    Min,
    MinBy,
    StdDev,
    Sum,
    Variance,
)
from spark_jobs.definitions.spec import Aggregate
from spark_jobs.engine import aggregates
from spark_jobs.engine.sketches import finished
from spark_jobs.expressions.dialect import Dialect
from tests.laws.database import connect

D = Dialect.DUCKDB
CASES, MOST_FACTS, LSNS = 1_500, 9, 4
START = datetime(2026, 1, 1, tzinfo=UTC)
SHAPE = EventColumns({"case_id": "BIGINT", "n": "BIGINT", "x": "DOUBLE", "s": "STRING", "flag": "BOOLEAN"})
Fact = dict[str, Any]
seeds = st.integers(0, 2**32 - 1)

MEASURES: dict[str, Measure] = {
    "count_all": Count(),
    "count_n": Count("n"),
    "sum_n": Sum("n"),
    "sum_x": Sum("x", tolerance=1e-9),
    "min_n": Min("n"),
    "max_s": Max("s"),
    "max_at": Max("occurred_at"),
    "mean_n": Mean("n"),
    "mean_x": Mean("x", tolerance=1e-9),
    "variance_n": Variance("n"),
    "variance_x": Variance("x", tolerance=1e-6),
    "deviation_n": StdDev("n"),
    "first_s": First("s"),
    "last_n": Last("n"),
    "last_s": Last("s"),
    "n_by_s": MaxBy("n", "s"),
    "s_by_n": MaxBy("s", by="n"),
    "x_by_flag": MaxBy("x", by="flag"),
    "flag_by_x": MinBy("flag", by="x"),
    "at_by_s": MinBy("occurred_at", by="s"),
    "day_by_n": MinBy("to_date(occurred_at)", by="n"),
    "words_by_at": MaxBy("split(s, 'z')", by="occurred_at"),
    "approx_n": ApproxDistinct("n"),
    "approx_s": ApproxDistinct("s"),
}
FILTERED = {f"{name}_if": replace(m, where="flag") for name, m in MEASURES.items()}


def view_of(measures: dict[str, Measure]) -> AggregateView:
    declared = Aggregate(of="thing", by={"case_id": "case_id"}, measures=measures, owner="tests", description="")
    return bind_aggregate("measured", declared, {"thing": SHAPE})


ALL = view_of(MEASURES | FILTERED)
DISTINCT = view_of(
    {
        "distinct_n": CountDistinct("n"),
        "distinct_s_if": CountDistinct("s", where="flag"),
        "n": Sum("n"),
        **{f"quantile_n_{int(q * 100)}": ApproxQuantile("n", q=q) for q in (0, 0.25, 0.5, 0.95, 1)},
        "quantile_n_if": ApproxQuantile("n", where="flag"),
    }
)


# --- facts ----------------------------------------------------------------------------------------------------------
def facts(seed: int) -> pa.Table:
    """Few values, so that they repeat; sizes from -10^12 to 10^12; nulls; equal times; parts in any order."""
    random = np.random.default_rng(seed)
    case = np.repeat(np.arange(CASES), random.integers(1, MOST_FACTS + 1, CASES))
    size = len(case)
    base = random.choice(np.array([0, 0, 10**6, 10**12 - 3, -(10**12) + 3]), CASES)[case]
    seconds = random.integers(0, 3, size)
    offsets = random.permutation(size)
    return pa.table(
        {
            "lsn": pa.array(random.integers(1, LSNS + 1, size), pa.int64()),
            "topic": pa.array(random.choice(["thing", "things"], size)),
            "partition": pa.array(random.integers(0, 12, size), pa.int32()),
            "offset": pa.array(offsets, pa.int64()),
            "event_type": pa.array(["thing"] * size),
            "occurred_at": pa.array([START + timedelta(seconds=int(s)) for s in seconds], pa.timestamp("us", "UTC")),
            "deleted": pa.array(np.zeros(size, bool)),
            "case_id": pa.array(case, pa.int64()),
            "n": _with_nulls(random, base + random.integers(-3, 4, size), pa.int64()),
            "x": _with_nulls(random, random.normal(0, 100, size).round(3), pa.float64()),
            "s": _with_nulls(random, random.choice(np.array(["", "a", "B", "ä", "zz"]), size), pa.string()),
            "flag": _with_nulls(random, random.integers(0, 2, size).astype(bool), pa.bool_()),
        }
    )


def _with_nulls(random: np.random.Generator, values: Any, kind: pa.DataType) -> pa.Array:
    return pa.array(values, kind, mask=random.random(len(values)) < 0.2)


# --- oracles --------------------------------------------------------------------------------------------------------
def in_order(rows: list[Fact]) -> list[Fact]:
    return sorted(rows, key=lambda row: (row["occurred_at"], row["topic"], row["partition"], row["offset"]))


def variance(values: list[Any]) -> float | None:
    exact = [Fraction(value) for value in values]
    if len(exact) < 2:
        return None
    mean = sum(exact) / len(exact)
    return float(sum((value - mean) ** 2 for value in exact) / (len(exact) - 1))


def mean(values: list[Any]) -> float | None:
    return float(sum(map(Fraction, values)) / len(values)) if values else None


ORACLES: dict[type[Measure], Callable[[list[Any]], Any]] = {
    Sum: lambda values: sum(values) if values else None,
    Min: lambda values: min(values, default=None),
    Max: lambda values: max(values, key=_bytes_of, default=None),
    Mean: mean,
    Variance: variance,
    StdDev: lambda values: None if (found := variance(values)) is None else math.sqrt(found),
    CountDistinct: lambda values: len(set(values)),
    # Below some hundred values the sketch counts exactly; the empty string is no value to DataSketches.
    ApproxDistinct: lambda values: len(set(values) - {""}),
}


def _bytes_of(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def expected(measure: Measure, rows: list[Fact]) -> Any:
    let_in = [row for row in rows if measure.where is None or row["flag"]]
    if measure.of is None:
        return len(let_in)
    if isinstance(measure, MinBy):
        return served_by(measure, let_in)
    values = [row[measure.of] for row in let_in]
    present = [value for value in values if value is not None]
    if isinstance(measure, Count):
        return len(present)
    if isinstance(measure, First | Last):
        ordered = [row[measure.of] for row in in_order(let_in)]
        return (ordered[0] if type(measure) is First else ordered[-1]) if ordered else None
    if isinstance(measure, ApproxQuantile):
        return next((v for v in sorted(present) if sum(o <= v for o in present) >= measure.q * len(present)), None)
    return ORACLES[type(measure)](present)


COMPUTED: dict[str, Callable[[Fact], Any]] = {
    "to_date(occurred_at)": lambda row: row["occurred_at"].date(),
    "split(s, 'z')": lambda row: None if row["s"] is None else row["s"].split("z"),
}


def served_by(measure: MinBy, rows: list[Fact]) -> Any:
    """Sorted by what it goes by, then by the value; a null only where nothing else has that place."""
    assert measure.of and measure.by
    value = COMPUTED.get(measure.of) or operator.itemgetter(measure.of)
    pairs = [(_bytes_of(row[measure.by]), value(row)) for row in rows if row[measure.by] is not None]
    if not pairs:
        return None
    ends = max if isinstance(measure, MaxBy) else min
    end = ends(by for by, _ in pairs)
    present = [value for by, value in pairs if by == end and value is not None]
    return ends(present, key=_bytes_of) if present else None


# --- laws -----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class World:
    """A connection with `thing` (the facts) and `parts` (partials per lsn) of one view."""

    con: duckdb.DuckDBPyConnection
    view: AggregateView
    given: pa.Table

    def answer(self, partials: str) -> list[dict[str, Any]]:
        merged = aggregates.merged(self.view, D, partials)
        rows = self.con.sql(aggregates.final(self.view, D, f"({merged})")).to_arrow_table().to_pylist()
        return sorted(rows, key=lambda row: row["case_id"])


def world(view: AggregateView, seed: int) -> World:
    con, given_facts = connect(), facts(seed)
    con.register("thing", given_facts)
    store(con, view, "parts", ["lsn"])
    store(con, view, "whole", [])
    return World(con, view, given_facts)


def store(con: duckdb.DuckDBPyConnection, view: AggregateView, name: str, per: list[str]) -> None:
    made = con.sql(aggregates.partials(view, D, aggregates.source(view, D, {"thing": "thing"}), per)).to_arrow_table()
    schema = pa.schema([*((column, pa.int64()) for column in per), *view.partial_schema])
    con.register(f"made_{name}", finished(made, view.sketches, schema))
    con.execute(f"CREATE TEMP TABLE {name} AS FROM made_{name}")


def same(measure: Measure, one: Any, other: Any) -> bool:
    if isinstance(measure, ApproxQuantile) and one is not None and other is not None:
        return bool(abs(one - other) * 128 <= abs(other))
    if one is None or other is None or not isinstance(other, float):
        return bool(one == other)
    return math.isclose(one, other, rel_tol=measure.tolerance or 1e-12, abs_tol=measure.tolerance or 0.0)


def oracle_differs(made: World, answer: list[dict[str, Any]]) -> list[str]:
    by_case: dict[int, list[Fact]] = {}
    for row in made.given.to_pylist():
        by_case.setdefault(row["case_id"], []).append(row)
    assert [row["case_id"] for row in answer] == sorted(by_case)
    return [
        f"{name} of {rows}: {row[name]}, not {wanted}"
        for row in answer
        for name, measure in made.view.declaration.measures.items()
        for rows in [by_case[row["case_id"]]]
        if not same(measure, row[name], wanted := expected(measure, rows))
    ]
