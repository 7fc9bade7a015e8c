"""Expressions without Spark: what is refused and how it is said, what fails and what does not, in DuckDB."""

import re
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from spark_jobs.expressions.arrow_types import arrow_of, kind_of
from spark_jobs.expressions.expression import parse
from spark_jobs.expressions.kinds import KINDS, Kind
from spark_jobs.settings import ROOT

COLUMNS: dict[str, Kind] = {
    "quantity": "BIGINT",
    "price": "BIGINT",
    "score": "DOUBLE",
    "name": "STRING",
    "paid": "BOOLEAN",
    "occurred_at": "TIMESTAMP",
    "day": "DATE",
}
FAILED = "failed"


def evaluate(text: str, **values: Any) -> Any:
    """The value in DuckDB over one row, or FAILED."""
    e = parse(text, COLUMNS, "test")
    columns = {name: pa.array([values.get(name)], arrow_of(kind)) for name, kind in COLUMNS.items()}
    with duckdb.connect() as connection:
        connection.register("row", pa.table(columns))
        value = f"epoch_us({e.duckdb})" if e.kind == "TIMESTAMP" else e.duckdb
        found = connection.sql(f"SELECT {value}, {e.duckdb_fails or 'FALSE'} FROM row").fetchall()[0]
    assert found[1] in (True, False)
    assert not found[1] or found[0] is None, "a failing row has no value"
    return FAILED if found[1] else found[0]


VALUES = {
    "quantity / 2": (7, 3.5),
    "quantity div 2": (-7, -3),
    "quantity % 3": (-7, -1),
    "quantity % -1": (-(2**63), 0),
    "quantity * 3": (2**62, FAILED),
    "- quantity": (-(2**63), FAILED),
    "quantity div -1": (-(2**63), FAILED),
    "-9223372036854775808 + quantity": (1, -(2**63) + 1),
    "abs(quantity)": (-(2**63), FAILED),
    "1 / quantity": (0, FAILED),
    "1 % quantity": (0, FAILED),
    "try_divide(1, quantity)": (0, None),
    "try_multiply(quantity, 3)": (2**62, None),
    # A failure in a branch that is not taken is no failure.
    "CASE WHEN quantity > 0 THEN 10 div quantity ELSE 0 END": (0, 0),
    "if(quantity = 0, 10 div quantity, 0)": (0, FAILED),
    "coalesce(quantity, 1 div 0)": (5, 5),
    "coalesce(NULL, quantity * 3, 1)": (2**62, FAILED),
    "quantity <> 0 AND 10 div quantity > 1": (0, False),
    "quantity = 0 OR 10 div quantity > 1": (0, True),
    "10 div quantity > 1 AND quantity <> 0": (0, FAILED),
    # Without being NULL itself, a failure is not swallowed.
    "(10 div quantity) IS NULL": (0, FAILED),
    "10 div quantity <=> NULL": (0, FAILED),
    "greatest(10 div quantity, 1)": (0, FAILED),
    # NULL and a failure in one chain: NULL.
    "10 div quantity + price": (0, None),
    "quantity BETWEEN 1 AND 3": (3, True),
    "quantity NOT IN (1, 2)": (3, True),
    "quantity IS DISTINCT FROM price": (1, True),
    "CASE quantity WHEN 1 THEN 'one' END": (2, None),
    "paid IS NOT TRUE": (1, True),
}


@pytest.mark.parametrize("text", VALUES)
def test_numbers_and_choices_give_what_the_documentation_says(text: str) -> None:
    quantity, expected = VALUES[text]
    assert evaluate(text, quantity=quantity) == expected


TEXTS = {
    "length(name)": ("日本", 2),
    "upper(name)": ("straße", "STRAßE"),
    "lower(name)": ("ÄBC", "Äbc"),
    "substring(name, 2, 2)": ("日本語x", "本語"),
    "trim(name)": (" \u00a0a ", "\u00a0a"),
    "name || name": ("a", "aa"),
    "concat(name, '$', name)": ("a", "a$a"),
    r"name LIKE '100\%'": ("100%", True),
    r"replace(name, '\'', '')": ("it's", "its"),
    "split(lower(name), '[^a-z]+')": ("Hello, World!", ["hello", "world", ""]),
    "split(name, ',')": ("", [""]),
    "get(split(name, ','), 1)": ("a", None),
    "size(split(name, ','))": ("a,b,", 3),
    "CAST(name AS BIGINT)": (" 12 ", 12),
    "CAST(name AS BIGINT) + 0": ("12.5", FAILED),
    "try_cast(name AS BIGINT)": ("12.5", None),
    "try_cast(CAST(name AS BIGINT) AS BIGINT)": ("12.5", FAILED),
    "CAST(name AS DOUBLE)": ("-1.5e2", -150.0),
    "unix_micros(CAST(name AS TIMESTAMP))": ("1970-01-01T00:00:01.5Z", 1_500_000),
    "CAST(CAST(name AS DATE) AS STRING)": ("2024-02-30", FAILED),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_give_what_the_documentation_says(text: str) -> None:
    name, expected = TEXTS[text]
    assert evaluate(text, name=name) == expected


INSTANTS = {
    "date_trunc('hour', occurred_at)": (-1, -3_600_000_000),
    "window_start('10 seconds', occurred_at)": (-1, -10_000_000),
    "unix_millis(occurred_at)": (-1, -1),
    "unix_seconds(occurred_at)": (1_999_999, 1),
    "occurred_at + INTERVAL 10 SECONDS": (5, 10_000_005),
    "occurred_at - INTERVAL '1' DAY": (-62_135_596_800_000_000, FAILED),
    "timestampdiff(MILLISECOND, TIMESTAMP '1970-01-01', occurred_at)": (-1_999, -1),
    "CAST(to_date(occurred_at) AS STRING)": (-1, "1969-12-31"),
    "CAST(occurred_at AS STRING)": (1_500_000, "1970-01-01 00:00:01.5"),
    "dayofweek(occurred_at)": (0, 5),
    "datediff(to_date(occurred_at), DATE '1970-01-03')": (0, -2),
}


@pytest.mark.parametrize("text", INSTANTS)
def test_instants_give_what_the_documentation_says(text: str) -> None:
    micros, expected = INSTANTS[text]
    assert evaluate(text, occurred_at=micros) == expected


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu"])
def test_the_time_zone_of_the_connection_does_not_matter(zone: str) -> None:
    e = parse("date_trunc('DAY', occurred_at)", COLUMNS, "test")
    with duckdb.connect() as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        query = f"SELECT epoch_us({e.duckdb}) FROM (SELECT make_timestamptz(86400000000 + 1) AS occurred_at)"
        assert connection.sql(query).fetchall() == [(86_400_000_000,)]


def test_an_expression_names_its_columns_and_its_kind() -> None:
    e = parse("quantity * price > 5 AND name LIKE 'a%'", COLUMNS, "test")
    assert (e.kind, e.columns) == ("BOOLEAN", frozenset({"quantity", "price", "name"}))


def test_what_cannot_fail_says_so() -> None:
    e = parse("coalesce(name, '') = 'a' AND score * 2 > 1", COLUMNS, "test")
    assert (e.spark_fails, e.duckdb_fails) == (None, None)


def test_a_dollar_in_a_literal_is_not_substituted_by_spark() -> None:
    assert "${" not in parse("name = '${spark.master}'", COLUMNS, "test").spark


def test_kinds_and_arrow_types_are_each_others_inverse() -> None:
    assert [kind_of(arrow_of(kind)) for kind in KINDS] == list(KINDS)
    with pytest.raises(ValueError, match="decimal128"):
        kind_of(pa.decimal128(10, 2))


PAGE = (ROOT / "docs/expressions.md").read_text()
EXAMPLES = dict(re.findall(r"^(\S.*?) +-> (.*)$", PAGE, re.MULTILINE))


def test_the_documentation_has_examples() -> None:
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_documentation_are_true(text: str) -> None:
    value = evaluate(text)
    assert EXAMPLES[text] == ("fails" if value == FAILED else "NULL" if value is None else str(value))
