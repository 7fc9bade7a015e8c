"""Instants and dates, in UTC, from 0001-01-01 to 9999-12-31; an operation that leaves this range fails.

Decode admits no other instants, so columns hold none. DuckDB works on its plain TIMESTAMP: independent of the
connection's TimeZone setting, and about ten times as fast as its functions on TIMESTAMP WITH TIME ZONE.
"""

from spark_jobs.expressions.operations.operation import Operation, Parameter, Table

# 0001-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z in microseconds.
MIN_INSTANT, MAX_INSTANT = -62_135_596_800_000_000, 253_402_300_799_999_999
MIN_DATE, MAX_DATE = "0001-01-01", "9999-12-31"
UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
PLAIN = "make_timestamp(epoch_us({0}))"


def _floor(micros: str) -> Operation:
    """Integers divide towards zero in both engines; counted from the first instant there is nothing below zero."""
    zero = -MIN_INSTANT // int(micros)
    return Operation(
        ("TIMESTAMP",),
        "BIGINT",
        f"((unix_micros({{0}}) + {-MIN_INSTANT}L) div {micros}L - {zero}L)",
        f"((epoch_us({{0}}) + {-MIN_INSTANT}) // {micros} - {zero})",
    )


def _part(spark: str, duckdb: str, *kinds: Parameter) -> tuple[Operation, ...]:
    """A field of the calendar, such as the year."""
    source = {"TIMESTAMP": PLAIN, "DATE": "{0}"}
    return tuple(
        Operation((kind,), "BIGINT", f"CAST({spark}({{0}}) AS BIGINT)", duckdb.format(source[kind])) for kind in kinds
    )


def _shifted(sign: str) -> Operation:
    """{1} is a literal number of microseconds, less than the whole range, so the sum is no overflow."""
    spark, duckdb = f"(unix_micros({{0}}) {sign} {{1}})", f"(epoch_us({{0}}) {sign} {{1}})"
    within = f"BETWEEN {MIN_INSTANT} AND {MAX_INSTANT}"
    return Operation(
        ("TIMESTAMP", "BIGINT"),
        "TIMESTAMP",
        f"timestamp_micros(CASE WHEN {spark} {within} THEN {spark} END)",
        f"make_timestamptz(CASE WHEN {duckdb} {within} THEN {duckdb} END)",
        fails=True,
    )


def _shifted_days() -> Operation:
    """{1} is a literal number of days, less than the whole range."""
    spark, duckdb = "date_add({0}, CAST({1} AS INT))", "({0} + CAST({1} AS INTEGER))"
    within = f"BETWEEN DATE '{MIN_DATE}' AND DATE '{MAX_DATE}'"
    return Operation(
        ("DATE", "BIGINT"),
        "DATE",
        f"(CASE WHEN {spark} {within} THEN {spark} END)",
        f"(CASE WHEN {duckdb} {within} THEN {duckdb} END)",
        fails=True,
    )


INSTANT: Table = {
    "date_trunc": (
        Operation(
            ("STRING", "TIMESTAMP"),
            "TIMESTAMP",
            "date_trunc({0}, {1})",
            "make_timestamptz(epoch_us(date_trunc({0}, make_timestamp(epoch_us({1})))))",
        ),
    ),
    # {0} the width, {1} a multiple of it that lifts every instant above zero, both literals in microseconds.
    "window_start": (
        Operation(
            ("BIGINT", "BIGINT", "TIMESTAMP"),
            "TIMESTAMP",
            "timestamp_micros((unix_micros({2}) + {1}) div {0} * {0} - {1})",
            "make_timestamptz((epoch_us({2}) + {1}) // {0} * {0} - {1})",
        ),
    ),
    "unix_micros": (Operation(("TIMESTAMP",), "BIGINT", "unix_micros({0})", "epoch_us({0})"),),
    "unix_millis": (_floor("1000"),),
    "unix_seconds": (_floor("1000000"),),
    "plus_micros": (_shifted("+"),),
    "minus_micros": (_shifted("-"),),
    "plus_days": (_shifted_days(),),
    # {0} the unit in microseconds, {1} from, {2} to; towards zero.
    "timestampdiff": (
        Operation(
            ("BIGINT", "TIMESTAMP", "TIMESTAMP"),
            "BIGINT",
            "((unix_micros({2}) - unix_micros({1})) div {0})",
            "((epoch_us({2}) - epoch_us({1})) // {0})",
        ),
    ),
    "datediff": (Operation(("DATE", "DATE"), "BIGINT", "CAST(datediff({0}, {1}) AS BIGINT)", "({0} - {1})"),),
    # sqlglot itself turns the argument of year, month, day and dayofweek into a date.
    "year": _part("year", "year({0})", "DATE"),
    "quarter": _part("quarter", "quarter({0})", "DATE", "TIMESTAMP"),
    "month": _part("month", "month({0})", "DATE"),
    "day": _part("day", "day({0})", "DATE"),
    "dayofweek": _part("dayofweek", "(dayofweek({0}) + 1)", "DATE"),  # Spark counts Sunday as 1, DuckDB as 0
    "hour": _part("hour", "hour({0})", "TIMESTAMP"),
    "minute": _part("minute", "minute({0})", "TIMESTAMP"),
    "second": _part("second", "second({0})", "TIMESTAMP"),
}
