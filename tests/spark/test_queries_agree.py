"""The law of queries: a `resolve` gives the same rows in Spark and in DuckDB, bit by bit, whatever it reads.

That of every view, and random text of the positive list.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.query.parse import Query, parse_query
from spark_jobs.expressions.query.render import RELATION
from tests.depth import examples
from tests.laws.expression_values import EDGES
from tests.laws.query_grammar import ROWS, queries_of_groups, queries_of_rows, row_tables
from tests.laws.sequence_cases import connection
from tests.laws.sequence_views import SUBJECTS
from tests.spark.test_expressions_agree import bits

pytestmark = pytest.mark.spark
LAW = settings(phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
KEYS, ROWS_DRAWN, COLUMNS = 1_000, 80, 8


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_resolve_of_every_view_gives_the_same_rows_in_both_engines(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    """A thousand keys at once; half of the values are edges: NULL, infinities, the greatest integers."""
    view, values = SUBJECTS[name].view, dict(SUBJECTS[name].values)
    for column, own in values.items():
        edges = [None, *EDGES[view.columns[column.rpartition(".")[2]]]]
        values[column] = [*edges, *list(own) * (len(edges) // len(own))]
    query = view.resolve
    assert query is not None

    @settings(LAW, max_examples=examples(2))
    @given(seed=st.integers(0, 2**32 - 1))
    def agree(seed: int) -> None:
        with connection(replace(SUBJECTS[name], values=values), seed, KEYS) as con:
            rows = con.sql("FROM everything").to_arrow_table()
        assert difference(spark, tmp_path, query, rows) == []

    agree()


@pytest.mark.parametrize("queries", [queries_of_rows, queries_of_groups])
def test_random_queries_give_the_same_rows_in_both_engines(
    interpreted: SparkSession, tmp_path: Path, queries: Callable[[int], st.SearchStrategy[str]]
) -> None:
    @settings(LAW, max_examples=examples(4))
    @given(text=queries(COLUMNS), rows=row_tables(ROWS_DRAWN))
    def agree(text: str, rows: pa.Table) -> None:
        assert difference(interpreted, tmp_path, parse_query(text, ROWS, {}, "law"), rows) == [], text

    agree()


def difference(session: SparkSession, folder: Path, query: Query, rows: pa.Table) -> list[Any]:
    """The first rows that only one engine gives.

    Spark reads a file: of local rows its optimiser makes constants. DuckDB reads Arrow, as in the product: of a file it
    trusts the bounds of a column of DOUBLEs, which leave out NaN.
    """
    file = folder / "rows.parquet"
    pq.write_table(rows, file)
    by_spark = session.sql(query.spark.replace(RELATION, f"parquet.`{file}`")).toArrow()
    with duckdb.connect(config={"threads": 1}) as con:
        by_duckdb = con.register("drawn", rows).sql(query.duckdb.replace(RELATION, "drawn")).to_arrow_table()
    one, other = (counted(query, answer) for answer in (by_spark, by_duckdb))
    assert one, "a law without rows"
    return [*((one - other).most_common(2)), *((other - one).most_common(2))]


def counted(query: Query, answer: pa.Table) -> Counter[tuple[Any, ...]]:
    """How often each row is there; instants as microseconds, as Python has none at the ends of the range."""
    assert answer.schema.names == list(query.columns)
    columns = [column.cast(arrow_of(kind)) for column, kind in zip(answer.columns, query.columns.values(), strict=True)]
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    lists = [[repr(bits(value)) for value in column.to_pylist()] for column in plain]
    return Counter(zip(*lists, strict=True))
