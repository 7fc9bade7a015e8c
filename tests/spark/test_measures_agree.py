"""Measures that compare values of every kind: both engines choose the same one of edge values, and of equal ones."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.event_columns import EventColumns
from spark_jobs.definitions.measures.base import Measure
from spark_jobs.definitions.measures.exact import Max, MaxBy, MinBy
from spark_jobs.definitions.spec import Aggregate, Top
from spark_jobs.engine import aggregates
from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.dialect import Dialect
from tests.laws import measured
from tests.laws.database import connect
from tests.laws.expression_values import COLUMNS, edge_table
from tests.spark.test_expressions_agree import bits

pytestmark = pytest.mark.spark
ORDERS = ["i", "d", "s", "p", "t", "day"]
VALUES = ["e", "u", "q", "v", "dag", "j"]
CASES = 40
SHAPE = EventColumns({"case_id": "BIGINT", "place": "BIGINT", **COLUMNS})


def view_of_edges() -> AggregateView:
    """Each kind by another one, and by few values, so that the value itself decides."""
    pairs = [*zip(VALUES, ORDERS, strict=True), *((value, "p") for value in VALUES)]
    return view_of({f"{m.__name__}_{value}_{by}".lower(): m(value, by) for m in (MaxBy, MinBy) for value, by in pairs})


def view_of(measures: Mapping[str, Measure], by: str = "case_id", top: Top | None = None) -> AggregateView:
    declared = Aggregate(of="thing", by={"case_id": by}, measures=measures, top=top, owner="tests", description="")
    return bind_aggregate("edges", declared, {"thing": SHAPE})


def edges() -> pa.Table:
    """Facts of edge values, those of a column without regard to those of another."""
    random, table = np.random.default_rng(5), edge_table()
    size = table.num_rows
    shuffled = {name: table[name].take(random.integers(0, size, size)) for name in table.column_names}
    base = measured.facts(1).slice(0, size)
    shuffled |= {name: base[name] for name in ("lsn", "topic", "partition", "offset", "event_type", "occurred_at")}
    places = {"case_id": pa.array(random.integers(0, CASES, size)), "place": pa.array(range(size), pa.int64())}
    return pa.table(shuffled | places)


def answer(view: AggregateView, d: Dialect, parts: str) -> str:
    return aggregates.final(view, d, f"({aggregates.merged(view, d, parts)})")


def plain(view: AggregateView, rows: pa.Table) -> list[dict[str, Any]]:
    """Rows by case; instants as microseconds, doubles by their bits, and -0.0 as 0.0, to which it is equal."""
    columns = {}
    for name, kind in view.answer_kinds.items():
        column = rows[name].cast(arrow_of(kind))
        column = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        values = [value + 0.0 if isinstance(value, float) else value for value in column.to_pylist()]
        columns[name] = list(map(bits, values))
    return sorted(pa.table(columns).to_pylist(), key=lambda row: row["case_id"])


def agreed(spark: SparkSession, view: AggregateView) -> list[dict[str, Any]]:
    """The answer over the edges: DuckDB's, Spark's over DuckDB's partials, and Spark's over its own, which are one."""
    with connect() as con:
        con.register("thing", edges())
        measured.store(con, view, "parts", ["lsn"])
        spark.createDataFrame(edges()).createOrReplaceTempView("thing")
        spark.createDataFrame(con.sql("FROM parts").to_arrow_table()).createOrReplaceTempView("parts")
        facts = aggregates.source(view, Dialect.SPARK, {"thing": "thing"})
        by_duckdb = plain(view, con.sql(answer(view, Dialect.DUCKDB, "parts")).to_arrow_table())
    for parts in ("parts", f"({aggregates.partials(view, Dialect.SPARK, facts, ['lsn'])})"):
        assert plain(view, spark.sql(answer(view, Dialect.SPARK, parts)).toArrow()) == by_duckdb
    return by_duckdb


def test_e_the_value_of_the_greatest_and_of_the_least_is_the_same_in_both_engines(interpreted: SparkSession) -> None:
    assert len(agreed(interpreted, view_of_edges())) == CASES


def test_e_both_engines_keep_the_same_ties(interpreted: SparkSession) -> None:
    """NaN is the greatest double and equal to itself, -0.0 is 0.0, NULL the least; a key per fact has ties enough."""
    view = view_of({"most": Max("d")}, by="place", top=Top(k=400, by="most", ties="keep"))
    ranks = Counter(row["rank"] for row in agreed(interpreted, view))
    assert ranks[1] > 1 and len(ranks) > 5 and ranks.total() > 400
