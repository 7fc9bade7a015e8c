"""Edge values of every kind, and tables of them, for the law that Spark and DuckDB agree.

kind -> edge values -> a table of COLUMNS: at random, or every pair of edges
"""

from datetime import date
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from spark_jobs.expressions.arrow_types import arrow_of
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations.instant import MAX_INSTANT, MIN_INSTANT
from spark_jobs.expressions.operations.numeric import MAX_BIGINT, MIN_BIGINT

COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("i", "j"), "BIGINT"),
    **dict.fromkeys(("d", "e"), "DOUBLE"),
    **dict.fromkeys(("s", "u"), "STRING"),
    **dict.fromkeys(("p", "q"), "BOOLEAN"),
    **dict.fromkeys(("t", "v"), "TIMESTAMP"),
    **dict.fromkeys(("day", "dag"), "DATE"),
}  # type: ignore[assignment]

_NUMERALS = ["12", "+5", "-0", "1.5", "1e3", ".5", "5.", "1e999", "-1e-999", "0x1F", "1_000", "12d", "NaN", "Infinity"]
_NUMERALS += ["9223372036854775807", "9223372036854775808", "-9223372036854775808", "000000000000000000000000012"]
_NUMERALS += ["1e", "+", ".", "--1", "\u0661", "2.2250738585072011e-308", "123456789012345678901234567890.1234567890"]
_INSTANT_TEXTS = ["2024-02-29", "2023-02-29", "0000-01-01", "2024-1-1", "10000-01-01", "2024-02-29T12:00:00Z"]
_INSTANT_TEXTS += ["2024-02-29T24:00:00Z", "2024-02-29 23:59:59.999999Z", "2024-02-29T12:00:00", "0001-01-01T00:00:00Z"]
_INSTANT_TEXTS += ["9999-12-31T23:59:59.999999Z", "2024-02-30T00:00:00Z", "2024-02-29T12:00:00.1Z"]
_WORDS = ["", "a", "A", "abc", "Hello, World", "a,b,,c,", ",", "%", "_", r"a%b_c\d", "it's", '"', "$", "${x}"]
_WORDS += ["Ärger", "ß", "İstanbul", "日本語", "👍🏽 ok"]
_BLANKS = [" ", "  both  ", "\ttab\n", " 12\n", "1\u00a0", "\u00a0x\u00a0", "\u2003", "\x1f1", "\x007", "a\x00b"]
_RARE = ["e\u0301", "\u01c5", "\ufeff", "\U0010ffff"]

EDGES: dict[Kind, list[Any]] = {
    "BIGINT": [
        *[0, 1, -1, 2, -2, 7, 10, -1000, 2**31, -(2**31), 2**53 + 1, 3_037_000_500],
        *[MAX_BIGINT, MAX_BIGINT - 1, MIN_BIGINT, MIN_BIGINT + 1],
    ],
    "DOUBLE": [
        *[0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 0.1, 1e-310, 5e-324, 1e308, -1e308, 2.0**53, 0.49999999999999994],
        *[2.0**63, -(2.0**63), 9.223372036854774784e18, -9.223372036854777856e18],
        *[float("inf"), float("-inf"), float("nan")],
    ],
    "STRING": _WORDS + _BLANKS + _RARE + _NUMERALS + _INSTANT_TEXTS,
    "BOOLEAN": [True, False],
    "TIMESTAMP": [
        *[0, 1, -1, 999, -999_999, 1_000_000, 1_709_164_800_000_000, 1_709_210_096_789_012],
        *[-2_208_988_800_000_001, -12_219_292_800_000_000, 253_370_764_800_000_000],
        *[MIN_INSTANT, MIN_INSTANT + 1, MAX_INSTANT],
    ],
    "DATE": [
        *[date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29), date(1582, 10, 10), date(1900, 2, 28)],
        *[date.min, date.max],
    ],
}

_RANDOM: dict[Kind, st.SearchStrategy[Any]] = {
    "BIGINT": st.integers(MIN_BIGINT, MAX_BIGINT) | st.integers(-20, 20),
    "DOUBLE": st.floats() | st.integers(-10, 10).map(lambda n: n / 2),
    "STRING": st.text(st.characters(codec="utf-8"), max_size=6) | st.text("aAbB ,.-%_", max_size=8),
    "BOOLEAN": st.booleans(),
    "TIMESTAMP": st.integers(MIN_INSTANT, MAX_INSTANT),
    "DATE": st.dates(),
}
VALUES = {kind: st.sampled_from(edges) | _RANDOM[kind] for kind, edges in EDGES.items()}


@st.composite
def random_tables(draw: st.DrawFn, rows: int) -> pa.Table:
    """A table of COLUMNS with edge values, random values and NULLs."""
    columns = {}
    for name, kind in COLUMNS.items():
        value = st.one_of(VALUES[kind], VALUES[kind], st.none())
        columns[name] = _array(kind, draw(st.lists(value, min_size=rows, max_size=rows)))
    return pa.table(columns)


def edge_table() -> pa.Table:
    """Every pair of edge values of a kind stands in some row; of texts, each with some others."""
    rows = max(len(edges) + 1 for edges in EDGES.values()) * 8
    columns = {}
    for kind, edges in EDGES.items():
        values, size = [*edges, None], len(edges) + 1
        first, second = (name for name, k in COLUMNS.items() if k == kind)
        columns[first] = _array(kind, [values[n % size] for n in range(rows)])
        columns[second] = _array(kind, [values[(n + n // size) % size] for n in range(rows)])
    return pa.table(columns).select(list(COLUMNS))


def _array(kind: Kind, values: list[Any]) -> pa.Array:
    return pa.array(values, pa.int64() if kind == "TIMESTAMP" else arrow_of(kind)).cast(arrow_of(kind))
