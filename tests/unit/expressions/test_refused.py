"""What the expression language leaves out is refused when a view is loaded, with the place, the reason and a hint."""

import pytest

from spark_jobs.expressions.error import ExpressionError
from spark_jobs.expressions.expression import parse
from tests.unit.expressions.test_expression import COLUMNS

REFUSED = {
    "quantty * 2": ("unknown column quantty", "quantity"),
    "Quantity": ("unknown column Quantity", "quantity"),
    "t.quantity": ("table", ""),
    "quantity >": ("parse", ""),
    "quantity; price": ("Block", ""),
    "quantity AS q": ("Alias", ""),
    "(SELECT 1)": ("Subquery", "lookup"),
    "*": ("Star", ""),
    "sum(quantity)": ("Sum", "measure"),
    "row_number() OVER (ORDER BY quantity)": ("Window", "sequence view"),
    "current_timestamp()": ("CurrentTimestamp", "now"),
    "rand()": ("Rand", ""),
    "hash(name)": ("hash", ""),
    "quantity = 'a'": ("eq of (BIGINT, STRING)", "CAST"),
    "occurred_at > '2026-01-01'": ("gt of (TIMESTAMP, STRING)", "TIMESTAMP '"),
    "occurred_at > day": ("gt of (TIMESTAMP, DATE)", "cast"),
    "occurred_at - occurred_at": ("subtract of", "timestampdiff"),
    "name + 1": ("add of (STRING, BIGINT)", ""),
    "quantity AND paid": ("AND must be BOOLEAN", ""),
    "CASE WHEN paid THEN 1 ELSE 'a' END": ("different kinds: BIGINT, STRING", "cast"),
    "quantity * 1.5": ("1.5 is a DECIMAL", "1.5D"),
    "9223372036854775808": ("outside of BIGINT", ""),
    "1e999": ("outside of DOUBLE", ""),
    "CAST(quantity AS INT)": ("type INT", "BIGINT"),
    "CAST(quantity AS DECIMAL(10, 2))": ("type DECIMAL", "cents"),
    "CAST(score AS STRING)": ("differs between the engines", "BIGINT"),
    "CAST(name AS VARCHAR(3))": ("type VARCHAR", "STRING"),
    "round(score, 2)": ("decimals", ""),
    "pow(score, 2)": ("Pow", "x * x"),
    "ln(score)": ("Ln", ""),
    "name RLIKE 'a'": ("RegexpLike", "LIKE"),
    "name ILIKE 'a'": ("ILike", "lower"),
    "name LIKE name": ("string literal", ""),
    "name LIKE 'a!%' ESCAPE '!'": ("Escape", ""),
    r"name LIKE 'a\\b'": ("escapes something else", ""),
    r"name = '\d'": ("escape", "double"),
    "name = 'a''b'": ("side by side", r"\'"),
    "trim(BOTH 'x' FROM name)": ("expression", ""),
    "substring(name, 0, 2)": ("from 1", ""),
    "substring(name, -2)": ("from 1", ""),
    "substring(name, quantity)": ("written out", ""),
    "split(name, 'ab')": ("more than one character", "class"),
    "split(name, '.')": ("'.'", "class"),
    "split(name, 'a|b')": ("more than one", ""),
    "split(name, '[a-z')": ("'['", ""),
    "split(name, '[z-a]')": ("in order", ""),
    r"split(name, '\\b')": ("escape", ""),
    "split(name, ',', 2)": ("limit", ""),
    "split(name, ',')[0]": ("Bracket", "get("),
    "get(split(name, ','), -1)": ("from 0", ""),
    "date_trunc(quantity, occurred_at)": ("literal", "HOUR"),
    "date_trunc('FORTNIGHT', occurred_at)": ("FORTNIGHT", "WEEK"),
    "date_trunc('DAY', day)": ("date_trunc of (STRING, DATE)", ""),
    "trunc(day, 'MM')": ("DateTrunc", "date_trunc"),
    "to_date(name, 'dd')": ("format", ""),
    "occurred_at + INTERVAL 1 MONTH": ("MONTH", "fixed length"),
    "occurred_at + INTERVAL quantity DAY": ("literal", ""),
    "INTERVAL 1 DAY": ("Interval", ""),
    "window_start('10 lightyears', occurred_at)": ("unit lightyears", "SECOND"),
    "window_start('0 seconds', occurred_at)": ("width", ""),
    "window_start(occurred_at)": ("window_start", ""),
    "quantity IN (price)": ("literals", "OR"),
    "quantity IN (1, NULL)": ("literals", ""),
    "score IN (0.5D)": ("DOUBLE", ""),
    "nullif(quantity, score)": ("BIGINT and DOUBLE", "cast"),
    "NULL": ("always NULL", "CAST"),
    "greatest(quantity)": ("two", ""),
    "lower(DISTINCT name)": ("Distinct", ""),
    "abs(quantity) FILTER (WHERE paid)": ("Filter", ""),
    "timestamp '2026-02-30'": ("no instant", ""),
    "X'AA'": ("HexString", ""),
    "quantity" + " + quantity" * 600: ("longer", "split"),
    "occurred_at" + " + INTERVAL 1 DAY" * 200: ("nested", "split"),
    "(" * 900 + "1" + ")" * 900: ("nested", ""),
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:40])
def test_what_is_not_in_the_subset_is_refused_with_place_reason_and_hint(text: str) -> None:
    reason, hint = REFUSED[text]
    with pytest.raises(ExpressionError) as caught:
        parse(text, COLUMNS, "views/orders.py, measure revenue")
    error = caught.value
    assert (error.text, error.where) == (text, "views/orders.py, measure revenue")
    assert reason in error.reason
    assert hint in error.hint
    assert str(error).startswith("views/orders.py, measure revenue: `")
