"""Casts that are exact in both engines, by (from, to). Every other cast is refused.

Text is read by one pattern in both engines, because each engine accepts spellings of its own.
"""

from spark_jobs.expressions.operations.instant import PLAIN
from spark_jobs.expressions.operations.operation import Operation, Parameter, table

_BLANK = r"[\x{0}-\x{20}\x{7f}]*"  # what Spark's casts trim
_INTEGER = rf"^{_BLANK}([+-]?[0-9]+){_BLANK}\z"
_DECIMAL = rf"^{_BLANK}([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?){_BLANK}\z"
_YEAR = "(?:[1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"
_DATE = rf"^({_YEAR}-[0-9]{{2}}-[0-9]{{2}})\z"
_INSTANT = rf"^({_YEAR}-[0-9]{{2}}-[0-9]{{2}}[T ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?)Z\z"


def _read(pattern: str, spark: str, duckdb: str) -> tuple[str, str]:
    """`spark` and `duckdb` hold TEXT for what stands inside the pattern's group, '' where it does not match."""
    regex = pattern.replace("{", "{{").replace("}", "}}")
    doubled = regex.replace("\\", "\\\\")
    return (
        spark.replace("TEXT", f"regexp_extract({{0}}, '{doubled}', 1)"),
        duckdb.replace("TEXT", f"regexp_extract({{0}}, '{regex}', 1)"),
    )


_CASTS = table(
    {
        "cast(BIGINT) -> DOUBLE": "CAST({0} AS DOUBLE)",
        # Towards zero. Spark lets 2^63 through as 2^63 - 1; here it fails like its neighbours.
        "cast(DOUBLE) -> BIGINT or fails": (
            "try_cast(nullif({0}, 9.223372036854775808E18D) AS BIGINT)",
            "TRY_CAST(trunc({0}) AS BIGINT)",
        ),
        "cast(BIGINT) -> STRING": ("CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
        "cast(BIGINT) -> BOOLEAN": ("({0} <> 0L)", "({0} <> 0)"),
        "cast(BOOLEAN) -> STRING": ("CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
        "cast(BOOLEAN) -> BIGINT": "CAST({0} AS BIGINT)",
        "cast(BOOLEAN) -> DOUBLE": "CAST({0} AS DOUBLE)",
        "cast(TIMESTAMP) -> DATE": ("CAST({0} AS DATE)", f"CAST({PLAIN} AS DATE)"),
        "cast(TIMESTAMP) -> STRING": ("CAST({0} AS STRING)", f"CAST({PLAIN} AS VARCHAR)"),
        "cast(DATE) -> TIMESTAMP": ("CAST({0} AS TIMESTAMP)", "make_timestamptz(epoch_us(CAST({0} AS TIMESTAMP)))"),
        "cast(DATE) -> STRING": ("CAST({0} AS STRING)", "CAST({0} AS VARCHAR)"),
        "cast(STRING) -> BIGINT or fails": _read(_INTEGER, "try_cast(TEXT AS BIGINT)", "TRY_CAST(TEXT AS BIGINT)"),
        "cast(STRING) -> DOUBLE or fails": _read(_DECIMAL, "try_cast(TEXT AS DOUBLE)", "TRY_CAST(TEXT AS DOUBLE)"),
        "cast(STRING) -> DATE or fails": _read(_DATE, "try_cast(TEXT AS DATE)", "TRY_CAST(TEXT AS DATE)"),
        "cast(STRING) -> TIMESTAMP or fails": _read(
            _INSTANT,
            "try_cast(concat(TEXT, 'Z') AS TIMESTAMP)",
            "make_timestamptz(epoch_us(TRY_CAST(TEXT AS TIMESTAMP)))",
        ),
    }
)
CASTS: dict[tuple[str, Parameter], Operation] = {(cast.parameters[0], cast.result): cast for cast in _CASTS["cast"]}
