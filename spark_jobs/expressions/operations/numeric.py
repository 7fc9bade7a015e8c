"""Arithmetic, and the comparison and choice of values of any kind.

BIGINT is checked (overflow and division by zero fail), DOUBLE is IEEE 754 (only division by zero fails). Refused on
purpose, because the engines' last bits differ: pow, exp, ln, log, trigonometry, round to digits.
Strings compare by code point; NaN equals itself and is the greatest DOUBLE; -0.0 equals 0.0.
"""

from spark_jobs.expressions.operations.operation import Table, table

MIN_BIGINT, MAX_BIGINT = -(2**63), 2**63 - 1
_MIN_SPARK, _MIN_DUCKDB = f"({MIN_BIGINT}L)", f"CAST({MIN_BIGINT} AS BIGINT)"
# floor and ceil: the doubles between -2^63 and the double below 2^63, whose floor and ceiling are BIGINTs.
_IN_RANGE = "CASE WHEN {{0}} BETWEEN {0} AND {1} THEN {{0}} END"
_RANGE_SPARK = _IN_RANGE.format("-9.223372036854775808E18D", "9.223372036854774784E18D")
_RANGE_DUCKDB = _IN_RANGE.format("-9.223372036854775808E18", "9.223372036854774784E18")

NUMERIC: Table = table(
    {
        "add(BIGINT, BIGINT) -> BIGINT or fails": ("try_add({0}, {1})", "TRY({0} + {1})"),
        "add(DOUBLE, DOUBLE) -> DOUBLE": "({0} + {1})",
        "subtract(BIGINT, BIGINT) -> BIGINT or fails": ("try_subtract({0}, {1})", "TRY({0} - {1})"),
        "subtract(DOUBLE, DOUBLE) -> DOUBLE": "({0} - {1})",
        "multiply(BIGINT, BIGINT) -> BIGINT or fails": ("try_multiply({0}, {1})", "TRY({0} * {1})"),
        "multiply(DOUBLE, DOUBLE) -> DOUBLE": "({0} * {1})",
        # Spark divides integers as DOUBLE; a zero divisor fails for both kinds.
        "divide(DOUBLE, DOUBLE) -> DOUBLE or fails": ("try_divide({0}, {1})", "({0} / nullif({1}, CAST(0 AS DOUBLE)))"),
        # Truncates towards zero. -2^63 div -1 overflows: division by -1 is a subtraction from zero.
        "div(BIGINT, BIGINT) -> BIGINT or fails": (
            "(CASE WHEN {1} = -1L THEN try_subtract(0L, {0}) ELSE {0} div nullif(nullif({1}, 0L), -1L) END)",
            "TRY({0} // nullif({1}, 0))",
        ),
        # Sign of the dividend. -2^63 % -1 is 0, which DuckDB cannot compute: % -1 is % 1.
        "mod(BIGINT, BIGINT) -> BIGINT or fails": (
            "try_mod({0}, {1})",
            "({0} % CASE {1} WHEN 0 THEN NULL WHEN -1 THEN 1 ELSE {1} END)",
        ),
        "negate(BIGINT) -> BIGINT or fails": ("try_subtract(0L, {0})", f"(-nullif({{0}}, {_MIN_DUCKDB}))"),
        "negate(DOUBLE) -> DOUBLE": "(-{0})",
        "abs(BIGINT) -> BIGINT or fails": (f"abs(nullif({{0}}, {_MIN_SPARK}))", f"abs(nullif({{0}}, {_MIN_DUCKDB}))"),
        "abs(DOUBLE) -> DOUBLE": "abs({0})",
        # IEEE 754 asks for the correctly rounded root, so both engines give the same bits.
        "sqrt(DOUBLE) -> DOUBLE": "sqrt({0})",
        # A BIGINT, as in Spark; out of range and NaN fail (in Spark: a wrong number).
        "floor(DOUBLE) -> BIGINT or fails": (f"floor({_RANGE_SPARK})", f"CAST(floor({_RANGE_DUCKDB}) AS BIGINT)"),
        "floor(BIGINT) -> BIGINT": "{0}",
        "ceil(DOUBLE) -> BIGINT or fails": (f"ceil({_RANGE_SPARK})", f"CAST(ceil({_RANGE_DUCKDB}) AS BIGINT)"),
        "ceil(BIGINT) -> BIGINT": "{0}",
        # Half away from zero; Spark gives 0.0, never -0.0.
        "round(DOUBLE) -> DOUBLE": ("round({0})", "(round({0}) + CAST(0 AS DOUBLE))"),
        "round(BIGINT) -> BIGINT": "{0}",
    }
)

COMPARISON: Table = table(
    {
        "eq(T, T) -> BOOLEAN": "({0} = {1})",
        "ne(T, T) -> BOOLEAN": "({0} <> {1})",
        "lt(T, T) -> BOOLEAN": "({0} < {1})",
        "le(T, T) -> BOOLEAN": "({0} <= {1})",
        "gt(T, T) -> BOOLEAN": "({0} > {1})",
        "ge(T, T) -> BOOLEAN": "({0} >= {1})",
        "same(T, T) -> BOOLEAN, nulls never": "({0} IS NOT DISTINCT FROM {1})",
        "is_null(T) -> BOOLEAN, nulls never": "({0} IS NULL)",
        "is_null(ARRAY<STRING>) -> BOOLEAN, nulls never": "({0} IS NULL)",
        "in(T, T, ..) -> BOOLEAN": "({0} IN ({rest}))",
        "not(BOOLEAN) -> BOOLEAN": "(NOT {0})",
        "nullif(T, T) -> T, nulls own": "nullif({0}, {1})",
        "greatest(T, T) -> T, nulls own": "greatest({0}, {1})",
        "least(T, T) -> T, nulls own": "least({0}, {1})",
    }
)
