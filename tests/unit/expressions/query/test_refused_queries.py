"""Queries of sequence views: what is refused, and how it is said."""

import pytest

from spark_jobs.expressions.error import ExpressionError
from tests.unit.expressions.query.test_queries import TWO_KINDS, T, item, query

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
