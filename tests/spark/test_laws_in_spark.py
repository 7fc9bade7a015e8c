"""A sample of the laws in Spark itself: its SQL is another text on another engine than DuckDB's.

The cases, oracles and checks are those of tests/laws.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from spark_jobs.definitions.bound_view import AggregateView
from spark_jobs.definitions.measures.approximate import ApproxDistinct, ApproxQuantile
from spark_jobs.engine import aggregates, sequences
from spark_jobs.expressions.dialect import Dialect, listed
from tests.laws import measured
from tests.laws.database import connect
from tests.laws.sequence_cases import connection, described, differing, resolved, rows_where
from tests.laws.sequence_views import SUBJECTS, Subject
from tests.unit.definitions.test_quantile import EDGES, bucket

pytestmark = pytest.mark.spark
SPARK = Dialect.SPARK


def answer(spark: SparkSession, view: AggregateView, partials: str) -> list[dict[str, Any]]:
    merged = aggregates.merged(view, SPARK, partials)
    rows = spark.sql(aggregates.final(view, SPARK, f"({merged})")).toArrow().to_pylist()
    return sorted(rows, key=lambda row: row["case_id"])


@pytest.mark.parametrize("view", [measured.ALL, measured.DISTINCT], ids=["all", "distinct"])
def test_partials_of_both_engines_merge_in_spark_to_the_answer_of_the_oracle(
    spark: SparkSession, view: AggregateView
) -> None:
    made = measured.world(view, 7)
    spark.createDataFrame(made.given).createOrReplaceTempView("thing")
    by_spark = aggregates.partials(view, SPARK, aggregates.source(view, SPARK, {"thing": "thing"}), ["lsn"])
    names = listed(["lsn", *view.partial_schema.names], SPARK)
    spark.sql(f"SELECT {names} FROM ({by_spark})").createOrReplaceTempView("by_spark")
    schema = pa.schema([("lsn", pa.int64()), *view.partial_schema])
    by_duckdb = made.con.sql("FROM parts").to_arrow_table().select(schema.names).cast(schema)
    spark.createDataFrame(by_duckdb).createOrReplaceTempView("by_duckdb")
    mixed = "(SELECT * FROM by_spark WHERE lsn <= 2 UNION ALL SELECT * FROM by_duckdb WHERE lsn > 2)"
    for partials in ("by_spark", "by_duckdb", mixed):
        assert not measured.oracle_differs(made, answer(spark, view, partials))[:3], partials


def test_spark_has_the_buckets_of_the_definition(spark: SparkSession) -> None:
    spark.createDataFrame(pa.table({"x": pa.array(EDGES, pa.int64())})).createOrReplaceTempView("edges")
    sql = ApproxQuantile.keyed[SPARK].replace("{x}", "(x)")
    found = spark.sql(f"SELECT x, {sql} FROM edges ORDER BY x").collect()
    assert [tuple(row) for row in found] == [(value, bucket(value)) for value in EDGES]


@pytest.mark.parametrize("kind", ["n", "s"])
def test_sketches_of_both_engines_estimate_the_same(spark: SparkSession, kind: str) -> None:
    """5 to 50,000 values per case: list, set and array forms of the sketch, divided over parts that overlap."""
    view = measured.view_of({"values": ApproxDistinct(kind)})
    sizes = [5, 300, 5_000, 50_000]
    case = np.repeat(np.arange(len(sizes)), [2 * size for size in sizes])
    value = np.concatenate([np.tile(np.arange(size), 2) for size in sizes])
    size = len(case)
    values = pa.array(value, pa.int64()) if kind == "n" else pa.array([f"v{one}" for one in value])
    random = np.random.default_rng(1)
    base = measured.facts(1).slice(0, 1)
    columns = {name: pa.repeat(base[name][0], size) for name in base.column_names}
    columns |= {"case_id": pa.array(case, pa.int64()), kind: values, "lsn": pa.array(random.integers(1, 5, size))}
    given = pa.table(columns, schema=base.schema)
    con = connect()
    con.register("thing", given)
    measured.store(con, view, "parts", ["lsn"])
    made = measured.World(con, view, given)
    spark.createDataFrame(given).createOrReplaceTempView("thing")
    spark.createDataFrame(con.sql("FROM parts").to_arrow_table()).createOrReplaceTempView("by_duckdb")
    whole = aggregates.partials(view, SPARK, aggregates.source(view, SPARK, {"thing": "thing"}))
    estimates = [row["values"] for row in answer(spark, view, f"({whole})")]
    assert estimates == [row["values"] for row in answer(spark, view, "by_duckdb")]
    assert estimates == [row["values"] for row in made.answer("parts")]
    assert all(abs(found - size) <= 0.05 * size for found, size in zip(estimates, sizes, strict=True))


IN_MAKE_TEST = ("sessions", "trades", "order_state", "an inner join")


@pytest.mark.parametrize(
    "subject",
    [
        pytest.param(subject, id=name, marks=[] if name in IN_MAKE_TEST else pytest.mark.slow)
        for name, subject in SUBJECTS.items()
    ],
)
def test_the_serving_rule_in_spark_is_the_recomputed_answer(spark: SparkSession, subject: Subject) -> None:
    with connection(subject, 11, 3_000) as con:
        for name, condition in {"built": "r.lsn <= c.cut", "fresh": "r.lsn > c.cut"}.items():
            con.execute(f"CREATE TEMP TABLE {name} AS FROM {rows_where(subject, condition)}")
        results = f"({sequences.resolve(subject.view, Dialect.DUCKDB, 'built')})"
        stored = zip(("stretched", "results"), sequences.stretched(subject.view, "built", results), strict=True)
        for name, sql in {"fresh": "FROM fresh", **dict(stored)}.items():
            spark.createDataFrame(con.sql(sql).to_arrow_table()).createOrReplaceTempView(name)
        served = sequences.served(subject.view, SPARK, ("stretched", "results"), "fresh")
        con.register("served", spark.sql(served).toArrow())
        columns = listed(subject.view.result_kinds, Dialect.DUCKDB)
        expected = f"SELECT {columns} FROM ({resolved(subject, 'everything')})"
        wrong = differing(con, f"SELECT {columns} FROM served", expected)
        assert not wrong, described(con, wrong)
