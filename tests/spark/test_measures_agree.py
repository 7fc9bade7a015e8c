"""Measures that compare values of every kind: both engines choose the same one of edge values, and of equal ones."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.binder import bind_aggregate
from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.event_columns import EventColumns
from spark_jobs.definitions.measures.exact import MaxBy, MinBy
from spark_jobs.definitions.spec import Aggregate
from spark_jobs.engine import aggregates
from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.testing.cases import connect
from tests.laws import measured
from tests.laws.expression_values import COLUMNS, edge_table
from tests.spark.test_expressions_agree import bits

pytestmark = pytest.mark.spark
ORDERS = ["i", "d", "s", "p", "t", "day"]
VALUES = ["e", "u", "q", "v", "dag", "j"]
CASES = 40


def view_of_edges() -> AggregateView:
    """Each kind by another one, and by few values, so that the value itself decides."""
    pairs = [*zip(VALUES, ORDERS, strict=True), *((value, "p") for value in VALUES)]
    measures = {f"{m.__name__}_{value}_{by}".lower(): m(value, by) for m in (MaxBy, MinBy) for value, by in pairs}
    declared = Aggregate(of="thing", by={"case_id": "case_id"}, measures=measures, owner="tests", description="")
    return bind_aggregate("edges", declared, {"thing": EventColumns({"case_id": "BIGINT", **COLUMNS})})


def edges() -> pa.Table:
    """Facts of edge values, those of a column without regard to those of another."""
    random, table = np.random.default_rng(5), edge_table()
    size = table.num_rows
    shuffled = {name: table[name].take(random.integers(0, size, size)) for name in table.column_names}
    base = measured.facts(1).slice(0, size).select(["lsn", "topic", "partition", "offset", "event_type", "occurred_at"])
    return pa.table({**dict(zip(base.column_names, base.columns, strict=True)), **shuffled,
                     "case_id": pa.array(random.integers(0, CASES, size))})  # fmt: skip


def answer(view: AggregateView, d: Dialect, parts: str) -> str:
    return aggregates.final(view, d, f"({aggregates.merged(view, d, parts)})")


def plain(view: AggregateView, rows: pa.Table) -> list[dict[str, Any]]:
    """Rows by case; instants as microseconds, doubles by their bits, and -0.0 as 0.0, to which it is equal."""
    columns = {"case_id": rows["case_id"].to_pylist()}
    for measure in view.measures:
        column = rows[measure.name].cast(arrow_of(measure.answer_kind))
        column = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
        columns[measure.name] = [
            bits(value + 0.0 if isinstance(value, float) else value) for value in column.to_pylist()
        ]
    return sorted(pa.table(columns).to_pylist(), key=lambda row: row["case_id"])


def test_e_the_value_of_the_greatest_and_of_the_least_is_the_same_in_both_engines(interpreted: SparkSession) -> None:
    view, con = view_of_edges(), connect()
    con.register("thing", edges())
    measured.store(con, view, "parts", ["lsn"])
    interpreted.createDataFrame(edges()).createOrReplaceTempView("thing")
    interpreted.createDataFrame(con.sql("FROM parts").to_arrow_table()).createOrReplaceTempView("parts")
    own = aggregates.partials(view, Dialect.SPARK, aggregates.source(view, Dialect.SPARK, {"thing": "thing"}), ["lsn"])
    answers = []
    for d, parts in ((Dialect.DUCKDB, "parts"), (Dialect.SPARK, "parts"), (Dialect.SPARK, f"({own})")):
        sql = aggregates.final(view, d, f"({aggregates.merged(view, d, parts)})")
        answers.append(
            plain(view, con.sql(sql).to_arrow_table() if d is Dialect.DUCKDB else interpreted.sql(sql).toArrow())
        )
    by_duckdb, merged_by_spark, by_spark = answers
    assert len(by_duckdb) == CASES and merged_by_spark == by_duckdb and by_spark == by_duckdb
