"""Queries of sequence views without Spark: what is refused and how it is said, what they give in DuckDB."""

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.error import ExpressionError
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
REFUSED = {
    # Shapes.
    "SELECT key FROM {rows}; DROP TABLE x": ("no plain SELECT", "UNION ALL"),
    "SELECT key FRM {rows}": ("does not parse", "docs"),
    "DROP TABLE x": ("no plain SELECT", "UNION ALL"),
    "SELECT 1 AS x": ("it reads nothing", "{rows}"),
    "SELECT key FROM batch.x": ("it reads batch.x", "{rows}"),
    "SELECT key FROM other": ("it reads other", "{rows}"),
    "SELECT key FROM {rows} WHERE ts > {reach}": ("there is no {reach}", "{gap}"),
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM {rows}) SELECT * FROM a": ("it reads b", "before"),
    "WITH RECURSIVE a AS (SELECT * FROM {rows}) SELECT * FROM a": ("recursive", ""),
    "WITH a (x) AS (SELECT key FROM {rows}) SELECT x FROM a": ("columns", ""),
    "WITH a AS (SELECT * FROM {rows}), a AS (SELECT * FROM {rows}) SELECT * FROM a": ("named a", "new name"),
    "WITH a AS (WITH b AS (SELECT * FROM {rows}) SELECT * FROM b) SELECT * FROM a": ("the clause WITH", "one WITH"),
    "SELECT r.key FROM {rows} r": ("the alias r", "no prefix"),
    "SELECT a.key FROM {rows}": ("table", ""),
    "SELECT key FROM {rows} JOIN {rows} USING (key)": ("the clause JOINS", "windows"),
    "SELECT key FROM {rows}, {rows}": ("the clause JOINS", "windows"),
    "SELECT key FROM (SELECT key FROM {rows})": ("it reads (SELECT", "WITH"),
    "SELECT key FROM {rows} LATERAL VIEW explode(words) AS word": ("the clause LATERALS", ""),
    "SELECT DISTINCT key FROM {rows}": ("the clause DISTINCT", "GROUP BY"),
    "SELECT key FROM {rows} ORDER BY key": ("the clause ORDER", "inside windows"),
    "SELECT key FROM {rows} LIMIT 1": ("the clause LIMIT", "row_number()"),
    f"SELECT key FROM {{rows}} QUALIFY row_number() OVER ({T}) = 1": ("the clause QUALIFY", "WITH"),
    "SELECT key FROM {rows} UNION SELECT key FROM {rows}": ("no UNION ALL", "UNION ALL"),
    "SELECT key FROM {rows} EXCEPT SELECT key FROM {rows}": ("no UNION ALL", "WHERE"),
    "SELECT key FROM {rows} UNION ALL SELECT key FROM {rows} LIMIT 1": ("no order", "windows"),
    "SELECT key FROM {rows} UNION ALL SELECT key, ts FROM {rows}": ("of 1 and 2 columns", "same"),
    "SELECT key, cents AS x FROM {rows} UNION ALL SELECT key, rate FROM {rows}": ("x as BIGINT and DOUBLE", "CAST"),
    "SELECT key FROM {rows} UNION ALL SELECT cents FROM {rows}": ("takes the name key", "own"),
    # Columns.
    "SELECT * EXCLUDE (ts) FROM {rows}": ("`* EXCEPT (ts)`: Star", "name the columns"),
    "SELECT key, cents + 1 FROM {rows}": ("a column named ''", "AS name"),
    "SELECT key, cents AS Cents FROM {rows}": ("a column named 'Cents'", "lower case"),
    "SELECT *, cents FROM {rows}": ("two columns are named cents", "once"),
    "SELECT key, ts AS x, cents AS x FROM {rows}": ("two columns are named x", "once"),
    "SELECT key, cents AS ts FROM {rows}": ("another column takes the name ts", "key, ts, kind, tie"),
    "SELECT key, min(ts) AS ts FROM {rows} GROUP BY key": ("another column takes the name ts", "new name"),
    item("NULL"): ("always NULL", "CAST(NULL AS BIGINT)"),
    item("nothing"): ("unknown column nothing", "cents"),
    "SELECT key, cents AS x, x + 1 AS y FROM {rows}": ("unknown column x", ""),
    # Values: the list of expressions.
    item("strlen(name)"): ("strlen", "docs/expressions.md"),
    item("cents * 1.5"): ("1.5 is a DECIMAL", "1.5D"),
    item("CAST(cents AS INT)"): ("type INT", "BIGINT"),
    item("rate = 'a'"): ("eq of (DOUBLE, STRING)", "CAST"),
    item("rand()"): ("Rand", "the rows alone"),
    item("current_timestamp()"): ("CurrentTimestamp", "the rows alone"),
    item("(SELECT max(cents) FROM {rows})"): ("Subquery", "windows"),
    item("EXISTS (SELECT 1 FROM {rows})"): ("Exists", "windows"),
    "SELECT key FROM {rows} WHERE cents IN (SELECT cents FROM {rows})": ("query", ""),
    "SELECT key FROM {rows} WHERE cents": ("a condition must be BOOLEAN", ""),
    # Aggregates.
    "SELECT max(cents) AS x FROM {rows}": ("Max", "GROUP BY key"),
    "SELECT key FROM {rows} WHERE max(cents) > 1": ("Max", "WITH"),
    "SELECT kind, max(cents) AS x FROM {rows} GROUP BY kind": ("groups of several keys", "GROUP BY key"),
    "SELECT key, cents FROM {rows} GROUP BY key": ("column cents is not grouped", "max(..)"),
    "SELECT * FROM {rows} GROUP BY key": ("Star", "name the columns"),
    "SELECT key FROM {rows} GROUP BY key, cents % 2": ("GROUP BY `cents % 2`", "WITH"),
    "SELECT key FROM {rows} GROUP BY key, rate": ("GROUP BY `rate`", "no DOUBLE"),
    "SELECT key FROM {rows} GROUP BY ALL": ("all", ""),
    "SELECT key FROM {rows} GROUP BY ROLLUP (key)": ("Rollup", ""),
    "SELECT key, sum(rate) AS x FROM {rows} GROUP BY key": ("sum of DOUBLE", "integers"),
    "SELECT key, max(words) AS x FROM {rows} GROUP BY key": ("ARRAY<STRING>, which has no order", ""),
    "SELECT key, max(NULL) AS x FROM {rows} GROUP BY key": ("max of NULL", "CAST"),
    "SELECT key, avg(cents) AS x FROM {rows} GROUP BY key": ("Avg", "there are count, min, max, sum"),
    "SELECT key, arg_max(cents, ts) AS x FROM {rows} GROUP BY key": ("ArgMax", "row_number()"),
    "SELECT key, any_value(cents) AS x FROM {rows} GROUP BY key": ("AnyValue", "there are"),
    "SELECT key, max(max(cents)) AS x FROM {rows} GROUP BY key": ("Max", "for each other"),
    "SELECT key, count(DISTINCT cents) AS x FROM {rows} GROUP BY key": ("Distinct", "row_number()"),
    "SELECT key, count(key, ts) AS x FROM {rows} GROUP BY key": ("expressions", ""),
    "SELECT key, count(* EXCEPT (ts)) AS x FROM {rows} GROUP BY key": ("Star", "name the columns"),
    "SELECT key, max(cents) FILTER (WHERE ts > 0) AS x FROM {rows} GROUP BY key": ("Filter", "CASE"),
    # Windows.
    item("count(*) OVER ()"): ("a window over several keys", "PARTITION BY key"),
    item("count(*) OVER (PARTITION BY kind ORDER BY ts)"): ("a window over several keys", "PARTITION BY key"),
    item("count(*) OVER (PARTITION BY key, rate)"): ("PARTITION BY DOUBLE", "BIGINT"),
    item("max(cents) OVER (PARTITION BY key ORDER BY words)"): ("ARRAY<STRING>, which has no order", ""),
    item("ntile(2) OVER (PARTITION BY key ORDER BY ts, tie)"): ("NTILE", "row_number"),
    item(f"lag(cents) IGNORE NULLS OVER ({T})"): ("IGNORE NULLS", "there are"),
    item(f"lag(cents, 1, 0) OVER ({T})"): ("default", ""),
    item(f"lag(cents, cents) OVER ({T})"): ("the distance of lag", ""),
    item(f"lag(lag(cents) OVER ({T})) OVER ({T})"): ("Window", "WITH"),
    item("lag(cents) OVER w"): ("the window w", "none"),
    "SELECT key, lag(ts) OVER (w ORDER BY tie) AS x FROM {rows} WINDOW w AS (PARTITION BY key)": (
        "the window w",
        "all",
    ),
    item("row_number() OVER (PARTITION BY key)"): ("row_number over rows whose order is not total", "tie"),
    item("row_number() OVER (PARTITION BY key ORDER BY ts)"): ("row_number over rows whose order is not total", "tie"),
    item("lag(cents) OVER (PARTITION BY key ORDER BY ts)"): ("lag over rows whose order is not total", "tie"),
    item("first_value(cents) OVER (PARTITION BY key ORDER BY cents)"): ("whose order is not total", "tie"),
    item("sum(cents) OVER (PARTITION BY key ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"): (
        "whose order is not total",
        "tie",
    ),
    f"WITH a AS (SELECT * FROM {{rows}} UNION ALL SELECT * FROM {{rows}}) SELECT key, lag(ts) OVER ({T}) AS x FROM a": (
        "whose order is not total",
        "{rows}",
    ),
    "WITH a AS (SELECT key, ts, kind FROM {rows}) "
    "SELECT key, lag(ts) OVER (PARTITION BY key ORDER BY ts) AS x FROM a": ("whose order is not total", "{rows}"),
    "SELECT key, cents, lag(max(ts)) OVER (PARTITION BY key ORDER BY min(ts)) AS x FROM {rows} GROUP BY key, cents": (
        "whose order is not total",
        "cents, key",
    ),
    item(f"lag(cents) OVER ({T} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"): ("lag with a frame", "leave it out"),
    item(f"count(*) OVER ({T} GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW)"): ("GROUPS", "RANGE"),
    item(f"count(*) OVER ({T} ROWS BETWEEN 1 FOLLOWING AND CURRENT ROW)"): ("ends before it begins", "BETWEEN"),
    item(f"count(*) OVER ({T} ROWS BETWEEN cents PRECEDING AND CURRENT ROW)"): ("the bound of a frame", ""),
    item(f"count(*) OVER ({T} RANGE BETWEEN {{gap}} PRECEDING AND CURRENT ROW)"): ("another distance", "ts alone"),
    item("count(*) OVER (PARTITION BY key ORDER BY cents RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"): (
        "another distance than time",
        "ts alone",
    ),
    item("count(*) OVER (PARTITION BY key ORDER BY ts DESC RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"): (
        "another distance than time",
        "upwards",
    ),
    item("count(*) OVER (PARTITION BY key ORDER BY 'ts' RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)"): (
        "another distance than time",
        "ts alone",
    ),
    item("count(*) OVER (PARTITION BY key ORDER BY ts RANGE BETWEEN {forever} PRECEDING AND CURRENT ROW)"): (
        "the bound of a frame",
        "",
    ),
    item("count(*) OVER (PARTITION BY key RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)"): ("has no order", ""),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.items(), ids=REFUSED)
def test_a_query_is_refused_with_the_reason_and_a_hint(text: str, said: tuple[str, str]) -> None:
    with pytest.raises(ExpressionError) as refused:
        query(text)
    assert said[0] in refused.value.reason
    assert said[1] in refused.value.hint


@pytest.mark.parametrize(("order", "is_total"), [("ts, tie", False), ("ts, tie, kind", True), ("kind, tie DESC", True)])
def test_two_rows_of_one_event_are_told_apart_by_kind(order: str, is_total: bool) -> None:
    text = item(f"lag(cents) OVER (PARTITION BY key ORDER BY {order})")
    if is_total:
        assert query(text, TWO_KINDS).columns == {"key": "BIGINT", "x": "BIGINT"}
    else:
        with pytest.raises(ExpressionError, match=r"not total \(ORDER BY .., kind, tie\)"):
            query(text, TWO_KINDS)


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
