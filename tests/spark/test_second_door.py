"""What the read server lets a statement compute means the same to Spark: each entry of its list, over the same rows."""

import datetime as dt
import math
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.contracts.row_types import INSTANT
from spark_jobs.query_server import engine
from spark_jobs.query_server.functions import ALIKE
from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.statement import question

pytestmark = pytest.mark.spark

LATE = dt.datetime(2026, 3, 1, 23, 59, 59, 999999)
ROWS = pa.table(
    {
        "g": ["a", "a", "b", "b", None],
        "i": [7, -7, 0, None, 3],
        "j": [2, 2, 5, 5, -2],
        "x": [1.5, -2.5, 0.25, None, 1e6],
        "y": [1.005, 2.675, 98765.435, None, 0.125],
        "s": ["Ab c", "", "ä%_", None, " x "],
        "b": [True, False, None, True, True],
        "d": [dt.date(2026, 3, 1), dt.date(2024, 2, 29), dt.date(2025, 12, 31), None, dt.date(2026, 1, 1)],
        "t": pa.array([LATE, dt.datetime(1999, 12, 31), None, None, dt.datetime(2026, 1, 5, 4)], INSTANT),
        "p": [["x", "y"], [], None, ["x"], ["z", None]],
    }
)  # fmt: skip
SINGLE = """
i + j; i - j; i * j; i / j; i % j; i div j; -i; i = j; i <=> j; i < x; i between 0 and 5; i in (7, 3); i is null
x / j; x * 2; abs(x); abs(i); sign(x); sqrt(j * j); exp(0); ln(exp(1)); power(j, 2); floor(x); ceil(x); round(x, 1)
round(i); greatest(i, j); least(i, j); try_divide(i, 0); try_divide(x, j); coalesce(i, j, 0); nvl(i, 9); nullif(j, 2)
if(i > 0, 'y', 'n'); case when i > 0 then 1 when i < 0 then -1 else 0 end; b and i > 0; b or i > 0; not b
i || d || b || cast(x as decimal(12, 2))
s || 'z'; concat(s, 'z', g); concat_ws('-', s, g, i); lower(s); upper(s); length(s); trim(s); substring(s, 2, 2)
substring(s, 1, 1); replace(s, 'b', 'q'); contains(s, 'b'); startswith(s, 'A'); endswith(s, 'c'); s like 'A%'; s like g
s like '%\\\\%%'; s rlike 'b'; s = 'Ab c'; s < 'b'; md5(s); md5('1/' || i || d || b)
year(d); month(d); day(d); dayofmonth(d); quarter(d); year(t); month(t); hour(t); minute(t); second(t)
extract(hour from t); date_add(d, 3); date_sub(d, 3); datediff(d, date'2026-01-01'); to_date('2026-03-01')
date_trunc('hour', t)
date_trunc('day', t); date_trunc('month', t); date_trunc('week', t); unix_micros(t); cast(t as date)
cast(d as timestamp); cast(i as double); cast(x as decimal(12, 2)); cast('2026-03-01 10:00:00' as timestamp)
cast('1.5' as double); round(x, 0); round(y, 2); round(y, 18); round(y); round(-y, 2); round(y * 1e12, 2); round(i, 1)
round(cast(y as decimal(12, 3)), 2); cast(y as decimal(10, 2)); cast(y as decimal(7)); try_cast(y as decimal(3, 2))
try_cast(s as decimal(10, 2)); ln(i); ln(x); substring(s, 0, 2); substring(s, 0); substring(s, -2); substring(s, -9, 8)
extract(year from t); extract(quarter from d); extract(month from d); extract(day from d); extract(minute from t)
date_trunc('year', t); date_trunc('quarter', t); date_trunc('minute', t); date_trunc('second', t); -7 div j; i div -2
i = '7'; i > ' 2 '; i in ('7', '-7'); i between '0' and '5'; s = '1.5'; x = '1.5'; d = '2026-03-01'; s in ('', '1e3')
datediff(cast(t as date), d); datediff('2026-03-01', d)
try_cast('z' as double); try_cast(s as date); cast(i as boolean); timestamp'2026-03-01 10:00:00'; d >= date'2026-01-01'
t >= timestamp'2026-01-01 00:00:00'; t + interval 1 hour; size(p); array_contains(p, 'x'); array(i, j)
exists (select 1 from rows r where r.i = rows.j)
row_number() over (order by j, i, x); rank() over (order by j); dense_rank() over (order by j)
percent_rank() over (order by j); cume_dist() over (order by j); ntile(2) over (order by j, i, x)
lag(i) over (order by j, i, x); lead(i, 2, 0) over (order by j, i, x); first_value(i) over (order by j, i, x)
last_value(i) over (order by j, i, x rows between unbounded preceding and unbounded following)
sum(i) over (partition by g order by j, i, x); avg(x) over (partition by g)
"""
GROUPED = """
count(*); count(i); count(distinct j); count_if(i > 0); sum(i); sum(x); avg(i); avg(x); min(s); max(t); min(d)
any_value(g); max_by(i, x); min_by(i, x); max_by(s, i); min_by(x, i); bool_and(b)
bool_or(b); median(x); stddev(x); stddev_pop(x); stddev_samp(x); variance(x); var_pop(x)
max_by(i, x) filter (where j > 2); sum(i) filter (where j > 2)
"""


def entries(text: str) -> list[str]:
    return [entry.strip() for line in text.strip().splitlines() for entry in line.split(";") if entry.strip()]


def told(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Values of both engines side by side: instants in UTC, doubles to nine digits, NULL first."""
    return sorted((tuple(map(_told, row)) for row in rows), key=lambda row: [(v is not None, str(v)) for v in row])


def _told(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.9g}")
    return value


@pytest.fixture(scope="module")
def both(spark: Any) -> Any:
    """A statement's rows by Spark and by the door's engine."""
    schema = "g string, i long, j long, x double, y double, s string, b boolean, d date, t timestamp, p array<string>"
    spark.createDataFrame([tuple(row.values()) for row in ROWS.to_pylist()], schema).createOrReplaceTempView("rows")
    con = engine.connect(256)
    con.register("kept", ROWS)
    con.execute('CREATE SCHEMA "serving"')
    con.execute('CREATE VIEW "serving"."rows" AS FROM kept')

    def ask(statement: str) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        by_door = engine.rows(con, question(statement, "serving").sql, {}, 1000)
        by_spark = [tuple(row) for row in spark.sql(statement).collect()]
        return told(by_spark), told([tuple(row.values()) for row in by_door.to_pylist()])

    return ask


def otherwise(both: Any, line: str, rest: str, first: str = "") -> list[str]:
    """The entries of a line that the engines answer otherwise: one statement has them all, as a plan costs the most."""
    columns = [*entries(first), *entries(line)]
    spark, door = both(f"SELECT {', '.join(f'{entry} AS v{n}' for n, entry in enumerate(columns))} FROM rows {rest}")
    assert len(spark) == len(door) > 0
    return [entry for n, entry in enumerate(columns) if [row[n] for row in spark] != [row[n] for row in door]]


@pytest.mark.parametrize("line", SINGLE.strip().splitlines())
def test_expressions_mean_the_same(both: Any, line: str) -> None:
    assert otherwise(both, line, "") == []


DIFFERENT = """
1.0 / 3; i / 2.5; cast(x as decimal(9, 2)) / 3; try_divide(1.0, j); x div 2; 7.5 div 2; i = '1.5'; i in ('2', '1e3')
i between '0.5' and 3; i <> '0x10'; datediff(t, d); t - t; avg(cast(x as decimal(9, 2))) over (); 1 / 'a'
"""


@pytest.mark.parametrize("entry", entries(DIFFERENT))
def test_what_would_be_another_value_is_refused(both: Any, entry: str) -> None:
    with pytest.raises(Refusal):
        both(f"SELECT {entry} AS value FROM rows")


@pytest.mark.parametrize("line", GROUPED.strip().splitlines())
def test_aggregates_mean_the_same(both: Any, line: str) -> None:
    assert otherwise(both, line, "GROUP BY j", first="j") == []


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT i, page FROM rows LATERAL VIEW explode(p) t AS page",
        "SELECT i, explode(p) AS page FROM rows",
        "SELECT g, count(*) AS n FROM rows GROUP BY ALL",
        "SELECT g, j, sum(i) AS n FROM rows GROUP BY ROLLUP (g, j)",
        "SELECT i FROM rows ORDER BY i LIMIT 2",
        "SELECT i FROM rows ORDER BY i DESC LIMIT 2",
        "SELECT * EXCEPT (t, p) FROM rows",
        "SELECT a.i, b.x FROM rows a LEFT JOIN rows b ON a.i = b.j AND b.x > 0",
        "SELECT i FROM rows EXCEPT SELECT j FROM rows",
        "SELECT i FROM rows INTERSECT SELECT i FROM rows",
        "WITH a AS (SELECT g, sum(i) AS n FROM rows GROUP BY g) SELECT * FROM a WHERE n > (SELECT min(j) FROM rows)",
    ],
)
def test_a_statement_means_the_same(both: Any, statement: str) -> None:
    spark, door = both(statement)
    assert spark == door


def test_every_function_of_the_list_is_among_them() -> None:
    import sqlglot

    from spark_jobs.query_server.statement import SPARK

    of_the_clock = {"CurrentDate", "CurrentTimestamp"}
    texts = [*entries(SINGLE), *entries(GROUPED), "explode(p)"]
    used = {type(node).__name__ for text in texts for node in sqlglot.parse_one(f"SELECT {text}", read=SPARK).walk()}
    assert {function.__name__ for function in ALIKE} - used - of_the_clock == set()
