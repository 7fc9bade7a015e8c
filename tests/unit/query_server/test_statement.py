"""One SELECT over the schemas behind the door, and nothing else: each refusal names what it refuses."""

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from spark_jobs.query_server.refusal import Refusal
from spark_jobs.query_server.statement import question

REFUSED = {
    "INSERT INTO serving.orders_by_day SELECT 1": "INSERT is refused",
    "DELETE FROM serving.orders_by_day": "DELETE is refused",
    "UPDATE serving.orders_by_day SET orders = 1": "UPDATE is refused",
    "MERGE INTO serving.a USING serving.b ON a.x = b.x WHEN MATCHED THEN DELETE": "MERGE is refused",
    "DROP VIEW serving.orders_by_day": "DROP is refused",
    "CREATE TABLE marts.x AS SELECT 1": "CREATE is refused",
    "ALTER VIEW serving.x AS SELECT 1": "ALTER",
    "TRUNCATE TABLE marts.x": "TRUNCATE",
    "SET spark.sql.shuffle.partitions = 1": "SET is refused",
    "SHOW TABLES": "SHOW is refused",
    "USE master": "USE is refused",
    "DESCRIBE serving.orders_by_day": "DESCRIBE is refused",
    "EXPLAIN SELECT 1": "EXPLAIN is refused",
    "CACHE TABLE serving.orders_by_day": "CACHE is refused",
    "ADD JAR '/tmp/x.jar'": "ADD",
    "COPY INTO marts.x FROM '/tmp'": "COPY is refused",
    "PRAGMA database_list": "PRAGMA",
    "ATTACH '/tmp/x.db'": "not understood",
    "INSTALL httpfs": "refused",
    "SELECT 1; SELECT 2": "2 statements",
    "": "0 statements",
    "SELECT * INTO marts.x FROM serving.orders_by_day": "INTO marts.x is refused",
    "SELECT * FROM serving.orders_by_day FOR UPDATE": "FOR UPDATE/SHARE",
    "SELECT ${x}": "is refused",
    "SELECT :name": "is refused",
    "SELECT TRANSFORM (a) USING 'cat' AS (b) FROM serving.x": "TRANSFORM(a) USING 'cat'",
    "SELECT * FROM master.log": "the schema master is not behind this door",
    "SELECT * FROM speed.partials": "the schema speed is not",
    "SELECT * FROM batch.orders_by_day": "the schema batch is not",
    "SELECT * FROM facts.order_placed": "the schema facts is not",
    "SELECT * FROM as_of.orders_by_day": "the schema as_of is not",
    "SELECT * FROM main.kept_1": "the schema main is not",
    "SELECT * FROM information_schema.tables": "the schema information_schema is not",
    "SELECT * FROM pg_catalog.pg_class": "the schema pg_catalog is not",
    "SELECT * FROM spark_catalog.serving.orders_by_day": "the catalog spark_catalog is not",
    "SELECT * FROM delta.`/etc/passwd`": "the schema delta is not",
    "SELECT * FROM csv.`/etc/passwd`": "the schema csv is not",
    "SELECT * FROM parquet.`s3://bucket/x`": "the schema parquet is not",
    "SELECT * FROM serving.orders_by_day VERSION AS OF 3": "no table is read at a version",
    "SELECT * FROM serving.orders_by_day TIMESTAMP AS OF '2026-01-01'": "no table is read at a version",
    "SELECT * FROM range(10)": "the table function RANGE(10) is refused",
    "SELECT * FROM read_csv('/etc/passwd')": "the table function READ_CSV('/etc/passwd')",
    "SELECT * FROM IDENTIFIER('master.log')": "the table function",
    "SELECT * FROM serving.a, LATERAL range(3) b": "the table function RANGE(3)",
    "SELECT * FROM query('SELECT 1')": "the table function",
    "SELECT (SELECT count(*) FROM master.log)": "the schema master is not",
    "WITH a AS (SELECT * FROM master.log) SELECT * FROM a": "the schema master is not",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM facts.order_placed)": "the schema facts is not",
    "SELECT 1 UNION ALL SELECT lsn FROM master.log": "the schema master is not",
    "SELECT getenv('HOME')": "GETENV('HOME')",
    "SELECT read_text('/etc/passwd')": "READ_TEXT('/etc/passwd')",
    "SELECT write_log('x')": "WRITE_LOG('x')",
    "SELECT sleep_ms(100000)": "SLEEP_MS(100000)",
    "SELECT current_setting('secret_directory')": "CURRENT_SETTING(",
    "SELECT java_method('java.lang.System', 'exit', 1)": "JAVA_METHOD(",
    "SELECT dayofweek(day) FROM orders_by_day": "DAYOFWEEK(day) is not among",
    "SELECT percentile(orders, 0.5) FROM orders_by_day": "PERCENTILE(orders, 0.5) is not among",
    "SELECT pages[0] FROM sessions": "pages[0] is not among",
    "SELECT CAST(1.5 AS BIGINT)": "a cast to BIGINT",
    "SELECT CAST(1.5 AS STRING)": "a cast to STRING",
    "SELECT CAST(1.5 AS DECIMAL)": "a cast to DECIMAL",
    "SELECT extract(dow FROM day) FROM orders_by_day": "EXTRACT(DOW FROM day) is not among",
    "SELECT extract(second FROM now())": "is not among",
    "SELECT date_trunc('decade', now())": "is not among",
    "SELECT datediff(month, day, day) FROM orders_by_day": "DATEDIFF(MONTH, day, day) is not among",
    "SELECT max_by(store_id, orders, 2) FROM orders_by_day": "is not among",
    "SELECT round(12.5, -1)": "ROUND(12.5, -1) is not among",
    "SELECT round(12.5, orders) FROM orders_by_day": "is not among",
    "SELECT ceil(12.55, 1)": "CEIL(12.55, 1) is not among",
    "SELECT substring(word, occurrences) FROM word_count": "is not among",
    "SELECT substring(word, 2, -1) FROM word_count": "is not among",
    "SELECT * FROM sessions LATERAL VIEW OUTER explode(pages) t AS page": "LATERAL VIEW OUTER is refused",
    "SELEC 1": "not understood as Spark's SQL",
    "SELECT " + "(" * 5000 + "1" + ")" * 5000: "not understood as Spark's SQL",
}


@pytest.mark.parametrize(("statement", "why"), REFUSED.items())
def test_all_but_a_select_over_the_schemas_behind_the_door_is_refused_by_name(statement: str, why: str) -> None:
    with pytest.raises(Refusal) as refused:
        question(statement, "serving")
    assert why in str(refused.value), refused.value
    assert refused.value.status == 400


TAKEN = {
    "SELECT * FROM orders_by_day": [("serving", "orders_by_day")],
    "SELECT 1;": [],
    "select * from SERVING.Orders_By_Day o join pin_monday.sessions s on o.x = s.y": [
        ("serving", "orders_by_day"),
        ("pin_monday", "sessions"),
    ],
    "WITH a AS (SELECT * FROM marts.b) SELECT * FROM a JOIN ops.runs": [("marts", "b"), ("ops", "runs")],
    "WITH a AS (SELECT 1 AS b) SELECT * FROM (SELECT * FROM a)": [],
    "SELECT * FROM (WITH a AS (SELECT 1 AS b) SELECT * FROM a) JOIN a": [("serving", "a")],
    "WITH a AS (SELECT * FROM a) SELECT * FROM a": [("serving", "a")],
    "WITH RECURSIVE a AS (SELECT * FROM a) SELECT * FROM a": [("serving", "a")],
    "WITH RECURSIVE a AS (SELECT * FROM a UNION ALL SELECT * FROM a) SELECT * FROM a": [("serving", "a")],
    "WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT 2 FROM a UNION SELECT 3 FROM a) SELECT 1": [("serving", "a")],
    "WITH RECURSIVE a AS (SELECT 1 EXCEPT SELECT * FROM a) SELECT * FROM a": [("serving", "a")],
    "WITH a_\u212a AS (SELECT 1 AS n) SELECT n FROM a_k": [],
    "WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM a WHERE n < 9) SELECT * FROM a": [],
    "WITH duckdb_settings AS (SELECT * FROM duckdb_settings) SELECT 1 FROM duckdb_settings": [
        ("serving", "duckdb_settings")
    ],
    "WITH a AS (SELECT * FROM b), b AS (SELECT * FROM a) SELECT * FROM a JOIN b": [("serving", "b")],
    "WITH a AS (WITH b AS (SELECT 1 AS n) SELECT * FROM b) SELECT * FROM a JOIN b": [("serving", "b")],
    "WITH a AS (SELECT 1 AS n) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT * FROM b)": [],
    "SELECT user_id, page FROM sessions LATERAL VIEW explode(pages) t AS page": [("serving", "sessions")],
    "SELECT * FROM a UNION ALL SELECT * FROM marts.a": [("serving", "a"), ("marts", "a")],
}


@pytest.mark.parametrize(("statement", "tables"), TAKEN.items())
def test_a_question_names_its_tables(statement: str, tables: list[tuple[str, str]]) -> None:
    assert sorted(question(statement, "serving").tables) == sorted(tables)


@pytest.mark.parametrize("statement", TAKEN)
def test_c1_no_name_is_left_that_the_engine_could_find_among_its_own_relations(statement: str) -> None:
    left = [
        table.name
        for table in sqlglot.parse_one(question(statement, "serving").sql, read="duckdb").find_all(exp.Table)
        if not table.db
    ]
    assert [name for name in left if not name.startswith("with ")] == []


def test_a_name_of_with_can_still_be_used_in_the_question() -> None:
    asked = question("WITH a(n) AS (SELECT 1), b AS (SELECT a.n FROM a) SELECT a.n, c.n FROM a JOIN b AS c", "serving")
    assert duckdb.sql(asked.sql).fetchall() == [(1, 1)]


def test_a_column_is_called_what_the_statement_says() -> None:
    asked = question("SELECT count(*), 7 / 2, round(1.005D, 2), 1 AS one UNION ALL SELECT 1, 2, 3, 4", "serving")
    assert duckdb.sql(asked.sql).columns == ["count(*)", "7 / 2", "round(CAST(1.005 AS DOUBLE), 2)", "one"]


def test_a_name_without_a_schema_gets_one_and_can_still_be_used_in_the_question() -> None:
    asked = question("SELECT orders_by_day.orders FROM orders_by_day ORDER BY 1", "pin_monday")
    assert 'FROM "pin_monday"."orders_by_day" AS "orders_by_day"' in asked.sql
    assert "NULLS FIRST" in asked.sql, "as Spark sorts"
