"""Arithmetic. BIGINT is checked (overflow and division by zero fail), DOUBLE is IEEE 754 (only division by zero fails).

Refused on purpose, because the engines' last bits differ: pow, exp, ln, log, trigonometry, round to digits.
"""

from spark_jobs.expressions.operations.operation import Operation, Parameter, Table, alike

MIN_BIGINT, MAX_BIGINT = -(2**63), 2**63 - 1
_MIN_SPARK, _MIN_DUCKDB = f"({MIN_BIGINT}L)", f"CAST({MIN_BIGINT} AS BIGINT)"
_DOUBLES: tuple[Parameter, ...] = ("DOUBLE", "DOUBLE")
# The doubles whose floor and ceiling are BIGINTs: -2^63 and the double below 2^63.
_IN_RANGE = "CASE WHEN {{0}} BETWEEN {0} AND {1} THEN {{0}} END"
_RANGE_SPARK = _IN_RANGE.format("-9.223372036854775808E18D", "9.223372036854774784E18D")
_RANGE_DUCKDB = _IN_RANGE.format("-9.223372036854775808E18", "9.223372036854774784E18")


def _checked(function: str, sign: str) -> tuple[Operation, ...]:
    duckdb = f"TRY({{0}} {sign} {{1}})"
    return (
        Operation(("BIGINT", "BIGINT"), "BIGINT", f"{function}({{0}}, {{1}})", duckdb, fails=True),
        alike(("DOUBLE", "DOUBLE"), "DOUBLE", f"({{0}} {sign} {{1}})"),
    )


def _to_integer(function: str) -> Operation:
    """floor or ceil of a DOUBLE is a BIGINT, as in Spark; out of range and NaN fail (in Spark: a wrong number)."""
    duckdb = f"CAST({function}({_RANGE_DUCKDB}) AS BIGINT)"
    return Operation(("DOUBLE",), "BIGINT", f"{function}({_RANGE_SPARK})", duckdb, fails=True)


NUMERIC: Table = {
    "add": _checked("try_add", "+"),
    "subtract": _checked("try_subtract", "-"),
    "multiply": _checked("try_multiply", "*"),
    # Spark divides integers as DOUBLE; a zero divisor fails for both kinds.
    "divide": (
        Operation(_DOUBLES, "DOUBLE", "try_divide({0}, {1})", "({0} / nullif({1}, CAST(0 AS DOUBLE)))", fails=True),
    ),
    # Truncates towards zero. -2^63 div -1 overflows: division by -1 is a subtraction from zero.
    "div": (
        Operation(
            ("BIGINT", "BIGINT"),
            "BIGINT",
            "(CASE WHEN {1} = -1L THEN try_subtract(0L, {0}) ELSE {0} div nullif(nullif({1}, 0L), -1L) END)",
            "TRY({0} // nullif({1}, 0))",
            fails=True,
        ),
    ),
    # Sign of the dividend. -2^63 % -1 is 0, which DuckDB cannot compute: % -1 is % 1.
    "mod": (
        Operation(
            ("BIGINT", "BIGINT"),
            "BIGINT",
            "try_mod({0}, {1})",
            "({0} % CASE {1} WHEN 0 THEN NULL WHEN -1 THEN 1 ELSE {1} END)",
            fails=True,
        ),
    ),
    "negate": (
        Operation(("BIGINT",), "BIGINT", "try_subtract(0L, {0})", f"(-nullif({{0}}, {_MIN_DUCKDB}))", fails=True),
        alike(("DOUBLE",), "DOUBLE", "(-{0})"),
    ),
    "abs": (
        Operation(
            ("BIGINT",),
            "BIGINT",
            f"abs(nullif({{0}}, {_MIN_SPARK}))",
            f"abs(nullif({{0}}, {_MIN_DUCKDB}))",
            fails=True,
        ),
        alike(("DOUBLE",), "DOUBLE", "abs({0})"),
    ),
    # IEEE 754 asks for the correctly rounded root, so both engines give the same bits.
    "sqrt": (alike(("DOUBLE",), "DOUBLE", "sqrt({0})"),),
    "floor": (_to_integer("floor"), alike(("BIGINT",), "BIGINT", "{0}")),
    "ceil": (_to_integer("ceil"), alike(("BIGINT",), "BIGINT", "{0}")),
    # Half away from zero; Spark gives 0.0, never -0.0.
    "round": (
        Operation(("DOUBLE",), "DOUBLE", "round({0})", "(round({0}) + CAST(0 AS DOUBLE))"),
        alike(("BIGINT",), "BIGINT", "{0}"),
    ),
}
