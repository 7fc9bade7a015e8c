"""Instants and dates, in UTC, from 0001-01-01 to 9999-12-31; an operation that leaves this range fails.

Decode admits no other instants, so columns hold none. DuckDB works on its plain TIMESTAMP: independent of the
connection's TimeZone setting, and about ten times as fast as its functions on TIMESTAMP WITH TIME ZONE.
"""

from spark_jobs.expressions.operations.operation import Table, table

# 0001-01-01T00:00:00.000000Z and 9999-12-31T23:59:59.999999Z in microseconds.
MIN_INSTANT, MAX_INSTANT = -62_135_596_800_000_000, 253_402_300_799_999_999
UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
PLAIN = "make_timestamp(epoch_us({0}))"
_INSTANTS = f"BETWEEN {MIN_INSTANT} AND {MAX_INSTANT}"
_DATES = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"


def _within(limits: str, value: str) -> str:
    """NULL past the limits; the value itself is no overflow, as the parser lets no longer literal through."""
    return f"CASE WHEN {value} {limits} THEN {value} END"


def _shifted(sign: str) -> tuple[str, str]:
    """{1} is a literal number of microseconds."""
    spark, duckdb = f"(unix_micros({{0}}) {sign} {{1}})", f"(epoch_us({{0}}) {sign} {{1}})"
    return f"timestamp_micros({_within(_INSTANTS, spark)})", f"make_timestamptz({_within(_INSTANTS, duckdb)})"


def _floor(micros: int) -> tuple[str, str]:
    """Integers divide towards zero in both engines; counted from the first instant there is nothing below zero."""
    zero = -MIN_INSTANT // micros
    return (
        f"((unix_micros({{0}}) + {-MIN_INSTANT}L) div {micros}L - {zero}L)",
        f"((epoch_us({{0}}) + {-MIN_INSTANT}) // {micros} - {zero})",
    )


INSTANT: Table = table(
    {
        "date_trunc(STRING, TIMESTAMP) -> TIMESTAMP": (
            "date_trunc({0}, {1})",
            "make_timestamptz(epoch_us(date_trunc({0}, make_timestamp(epoch_us({1})))))",
        ),
        # {0} the width, {1} a multiple of it that lifts every instant above zero, both literals in microseconds.
        "window_start(BIGINT, BIGINT, TIMESTAMP) -> TIMESTAMP": (
            "timestamp_micros((unix_micros({2}) + {1}) div {0} * {0} - {1})",
            "make_timestamptz((epoch_us({2}) + {1}) // {0} * {0} - {1})",
        ),
        "unix_micros(TIMESTAMP) -> BIGINT": ("unix_micros({0})", "epoch_us({0})"),
        "unix_millis(TIMESTAMP) -> BIGINT": _floor(1_000),
        "unix_seconds(TIMESTAMP) -> BIGINT": _floor(1_000_000),
        "plus_micros(TIMESTAMP, BIGINT) -> TIMESTAMP or fails": _shifted("+"),
        "minus_micros(TIMESTAMP, BIGINT) -> TIMESTAMP or fails": _shifted("-"),
        # {1} is a literal.
        "plus_days(DATE, BIGINT) -> DATE or fails": (
            f"({_within(_DATES, 'date_add({0}, CAST({1} AS INT))')})",
            f"({_within(_DATES, '({0} + CAST({1} AS INTEGER))')})",
        ),
        # {0} the unit in microseconds, {1} from, {2} to; towards zero.
        "timestampdiff(BIGINT, TIMESTAMP, TIMESTAMP) -> BIGINT": (
            "((unix_micros({2}) - unix_micros({1})) div {0})",
            "((epoch_us({2}) - epoch_us({1})) // {0})",
        ),
        "datediff(DATE, DATE) -> BIGINT": ("CAST(datediff({0}, {1}) AS BIGINT)", "({0} - {1})"),
        # sqlglot itself turns the argument of year, month, day and dayofweek into a date.
        "year(DATE) -> BIGINT": ("CAST(year({0}) AS BIGINT)", "year({0})"),
        "quarter(DATE) -> BIGINT": ("CAST(quarter({0}) AS BIGINT)", "quarter({0})"),
        "quarter(TIMESTAMP) -> BIGINT": ("CAST(quarter({0}) AS BIGINT)", f"quarter({PLAIN})"),
        "month(DATE) -> BIGINT": ("CAST(month({0}) AS BIGINT)", "month({0})"),
        "day(DATE) -> BIGINT": ("CAST(day({0}) AS BIGINT)", "day({0})"),
        # Spark counts Sunday as 1, DuckDB as 0.
        "dayofweek(DATE) -> BIGINT": ("CAST(dayofweek({0}) AS BIGINT)", "(dayofweek({0}) + 1)"),
        "hour(TIMESTAMP) -> BIGINT": ("CAST(hour({0}) AS BIGINT)", f"hour({PLAIN})"),
        "minute(TIMESTAMP) -> BIGINT": ("CAST(minute({0}) AS BIGINT)", f"minute({PLAIN})"),
        "second(TIMESTAMP) -> BIGINT": ("CAST(second({0}) AS BIGINT)", f"second({PLAIN})"),
    }
)
