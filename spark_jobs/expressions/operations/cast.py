"""Casts that are exact in both engines, by (from, to). Every other cast is refused.

Text is read by one pattern in both engines, because each engine accepts spellings of its own.
"""

from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations.instant import PLAIN
from spark_jobs.expressions.operations.operation import Operation

_BLANK = r"[\x{0}-\x{20}\x{7f}]*"  # what Spark's casts trim
_INTEGER = rf"^{_BLANK}([+-]?[0-9]+){_BLANK}\z"
_DECIMAL = rf"^{_BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?){_BLANK}\z"
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = rf"^({_YEAR}-[0-9]{{2}}-[0-9]{{2}})\z"
_INSTANT = rf"^({_YEAR}-[0-9]{{2}}-[0-9]{{2}}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?)Z\z"


def _matched(pattern: str) -> tuple[str, str]:
    """The text inside the pattern's group, '' where it does not match, for Spark and for DuckDB."""
    spark, duckdb = pattern.replace("\\", "\\\\"), pattern
    braces = str.maketrans({"{": "{{", "}": "}}"})
    return (
        f"regexp_extract({{0}}, '{spark.translate(braces)}', 1)",
        f"regexp_extract({{0}}, '{duckdb.translate(braces)}', 1)",
    )


def _read(pattern: str, to: Kind, spark: str, duckdb: str) -> Operation:
    """`spark` and `duckdb` hold {{text}} for the matched text."""
    in_spark, in_duckdb = _matched(pattern)
    return Operation(("STRING",), to, spark.replace("TEXT", in_spark), duckdb.replace("TEXT", in_duckdb), fails=True)


def _cast(of: Kind, to: Kind, spark: str, duckdb: str, fails: bool = False) -> Operation:
    return Operation((of,), to, spark, duckdb, fails=fails)


CASTS: dict[tuple[Kind, Kind], Operation] = {
    (operation.parameters[0], operation.result): operation  # type: ignore[misc]
    for operation in (
        _cast("BIGINT", "DOUBLE", "CAST({0} AS DOUBLE)", "CAST({0} AS DOUBLE)"),
        # Towards zero. Spark lets 2^63 through as 2^63 - 1; here it fails like its neighbours.
        _cast(
            "DOUBLE",
            "BIGINT",
            "try_cast(nullif({0}, 9.223372036854775808E18D) AS BIGINT)",
            "TRY_CAST(trunc({0}) AS BIGINT)",
            fails=True,
        ),
        _cast("BIGINT", "STRING", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
        _cast("BIGINT", "BOOLEAN", "({0} <> 0L)", "({0} <> 0)"),
        _cast("BOOLEAN", "STRING", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
        _cast("BOOLEAN", "BIGINT", "CAST({0} AS BIGINT)", "CAST({0} AS BIGINT)"),
        _cast("BOOLEAN", "DOUBLE", "CAST({0} AS DOUBLE)", "CAST({0} AS DOUBLE)"),
        _cast("TIMESTAMP", "DATE", "CAST({0} AS DATE)", f"CAST({PLAIN} AS DATE)"),
        _cast("TIMESTAMP", "STRING", "CAST({0} AS STRING)", f"CAST({PLAIN} AS VARCHAR)"),
        _cast("DATE", "TIMESTAMP", "CAST({0} AS TIMESTAMP)", "make_timestamptz(epoch_us(CAST({0} AS TIMESTAMP)))"),
        _cast("DATE", "STRING", "CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
        _read(_INTEGER, "BIGINT", "try_cast(TEXT AS BIGINT)", "TRY_CAST(TEXT AS BIGINT)"),
        _read(_DECIMAL, "DOUBLE", "try_cast(TEXT AS DOUBLE)", "TRY_CAST(TEXT AS DOUBLE)"),
        _read(_DATE, "DATE", "try_cast(TEXT AS DATE)", "TRY_CAST(TEXT AS DATE)"),
        _read(
            _INSTANT,
            "TIMESTAMP",
            "try_cast(concat(TEXT, 'Z') AS TIMESTAMP)",
            "make_timestamptz(epoch_us(TRY_CAST(TEXT AS TIMESTAMP)))",
        ),
    )
}
