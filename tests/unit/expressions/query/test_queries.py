"""What queries of sequence views mean, in DuckDB; tests/spark/test_queries_agree.py asks Spark."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.query.parse import Query, parse_query
from spark_jobs.expressions.query.render import RELATION
from spark_jobs.expressions.query.typed import Relation

COLUMNS: dict[str, Kind] = {
    "key": "BIGINT",
    "ts": "BIGINT",
    "kind": "STRING",
    "tie": "STRING",
    "cents": "BIGINT",
    "rate": "DOUBLE",
    "name": "STRING",
    "at": "TIMESTAMP",
    "words": "ARRAY<STRING>",
}
ONE_KIND, TWO_KINDS = frozenset({"tie"}), frozenset({"tie", "kind"})


def query(text: str, unique: frozenset[str] = ONE_KIND) -> Query:
    return parse_query(text, Relation(COLUMNS, unique), {"gap": 60, "forever": 2**63 - 1}, "test")


def item(text: str) -> str:
    return f"SELECT key, {text} AS x FROM {{rows}}"


def answer(text: str, rows: list[dict[str, Any]]) -> list[Any]:
    """The values of x in DuckDB, NULL last; of `rows` that say what is not NULL, and may leave key, ts and tie out."""
    filled = [{"key": 1, "ts": place, "tie": f"{place}", **row} for place, row in enumerate(rows)]
    columns = {name: pa.array([row.get(name) for row in filled], arrow_of(kind)) for name, kind in COLUMNS.items()}
    with duckdb.connect() as connection:
        connection.register("given", pa.table(columns))
        found = [x for _, x in connection.sql(query(text).duckdb.replace(RELATION, "given")).fetchall()]
    return sorted(found, key=lambda x: (x is None, x))


T = "PARTITION BY key ORDER BY ts, tie"


def test_the_kinds_of_columns_are_known_and_the_names_those_of_the_first_branch() -> None:
    branches = query(
        f"WITH a AS (SELECT *, cents / 2 AS half, lag(at) OVER w AS before FROM {{rows}} WINDOW w AS ({T})) "
        "SELECT key, max(half) AS half, before, count(*) AS n FROM a GROUP BY key, before "
        "UNION ALL SELECT key, rate, at, 0 FROM a"
    )
    assert branches.columns == {"key": "BIGINT", "half": "DOUBLE", "before": "TIMESTAMP", "n": "BIGINT"}


MOST = 2**63 - 1
ANSWERS = {
    "a cast goes towards zero": (item("CAST(cents / 1000 AS BIGINT)"), [{"cents": 589}, {"cents": -1999}], [-1, 0]),
    "what fails is NULL": (item("10 div cents"), [{"cents": 0}, {"cents": 3}], [3, None]),
    "a failure is not what coalesce waits for": (item("coalesce(10 div cents, 7)"), [{"cents": 0}, {}], [7, None]),
    "in a later part it is NULL": (
        "WITH a AS (SELECT *, 10 div cents AS y FROM {rows}) SELECT key, coalesce(y, 7) AS x FROM a",
        [{"cents": 0}],
        [7],
    ),
    "a condition that fails lets nothing through": (
        "SELECT key, cents AS x FROM {rows} WHERE 10 div cents > 1",
        [{"cents": 0}, {"cents": 2}, {}],
        [2],
    ),
    "NULL is the least": (
        item("lag(cents) OVER (PARTITION BY key ORDER BY cents, tie)"),
        [{"cents": 1}, {}],
        [None] * 2,
    ),
    "unless it is said": (
        item("lag(cents) OVER (PARTITION BY key ORDER BY cents NULLS LAST, tie)"),
        [{"cents": 1}, {}],
        [1, None],
    ),
    "downwards it is the last": (
        item("lag(cents) OVER (PARTITION BY key ORDER BY cents DESC, tie)"),
        [{"cents": 1}, {}],
        [1, None],
    ),
    "a sum may pass the limit and return": (
        item(f"sum(cents) OVER ({T})"),
        [{"cents": MOST}, {"cents": 1}, {"cents": -2}],
        [MOST - 1, MOST, None],
    ),
    "a sum of nothing is NULL": ("SELECT key, sum(cents) AS x FROM {rows} GROUP BY key", [{}, {}], [None]),
    "count leaves NULL out": (
        "SELECT key, count(cents) * 10 + count(*) AS x FROM {rows} GROUP BY key",
        [{}, {"cents": 5}],
        [12],
    ),
    "there is one zero": ("SELECT key, max(rate) AS x FROM {rows} GROUP BY key", [{"rate": -0.0}], [0.0]),
    "NaN is the greatest": (
        "SELECT key, max(rate) > 1e308 AS x FROM {rows} GROUP BY key",
        [{"rate": float("inf")}, {"rate": float("nan")}],
        [True],
    ),
    "having keeps groups": (
        "SELECT key, max(cents) AS x FROM {rows} GROUP BY key HAVING count(*) > 1",
        [{"key": 1, "cents": 1}, {"key": 2, "cents": 2}, {"key": 2, "cents": 3}],
        [3],
    ),
    "a neighbour may be further away": (
        item(f"lag(cents, 2) OVER ({T})"),
        [{"cents": 1}, {"cents": 2}, {"cents": 3}],
        [1, None, None],
    ),
    "windows see groups": (
        "SELECT key, lag(sum(cents)) OVER (PARTITION BY key ORDER BY kind) AS x FROM {rows} GROUP BY key, kind",
        [{"kind": "a", "cents": 1}, {"kind": "a", "cents": 2}, {"kind": "b"}],
        [3, None],
    ),
    "windows see what WHERE leaves": (
        f"SELECT key, lag(cents) OVER ({T}) AS x FROM {{rows}} WHERE cents <> 2",
        [{"cents": 1}, {"cents": 2}, {"cents": 3}],
        [1, None],
    ),
    "a frame of time includes both ends": (
        item("count(*) OVER (PARTITION BY key ORDER BY ts RANGE BETWEEN {gap} PRECEDING AND CURRENT ROW)"),
        [{"ts": 0}, {"ts": 60}, {"ts": 60}, {"ts": 121}],
        [1, 1, 3, 3],
    ),
    "no distance is the row's own rank": (
        item("count(*) OVER (PARTITION BY key ORDER BY ts, kind RANGE BETWEEN 0 PRECEDING AND 0 FOLLOWING)"),
        [{"ts": 0, "kind": "a"}, {"ts": 0, "kind": "a"}, {"ts": 0, "kind": "b"}],
        [1, 2, 2],
    ),
    "without a frame rows of one rank count together": (
        item("count(*) OVER (PARTITION BY key ORDER BY ts)"),
        [{"ts": 0}, {"ts": 0}, {"ts": 1}],
        [2, 2, 3],
    ),
    "a frame of rows takes them one by one": (
        item(f"last_value(cents) OVER ({T} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)"),
        [{"cents": 1}, {"cents": 2}, {"cents": 3}],
        [3, 3, None],
    ),
    "rows are numbered from 1": (item(f"row_number() OVER ({T}) % 2"), [{}, {}, {}], [0, 1, 1]),
}


@pytest.mark.parametrize(("text", "rows", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_a_query_means(text: str, rows: list[dict[str, Any]], expected: list[Any]) -> None:
    assert repr(answer(text, rows)) == repr(expected)
