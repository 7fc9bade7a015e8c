"""Defer new rows of a sequence view to the next build: those before the horizon, and those of hot keys.

horizon, digests of keys -> a predicate on the speed layer's rows. Why rows wait is in docs/sequences.md, "Limits".
"""

from collections.abc import Sequence
from datetime import datetime

from spark_jobs.expressions.dialect import Dialect, type_of
from spark_jobs.expressions.epoch import since_epoch

LATE, HOT_KEY = "late", "hot_key"


def digest(d: Dialect) -> str:
    """SQL of the name of a key in serving SQL: 32 hexadecimal digits, as the key's own text is untrusted."""
    return f"md5(CAST(key AS {type_of('STRING', d)}))"


def deferred(d: Dialect, horizon: datetime | None, hot_keys: Sequence[str]) -> dict[str, str]:
    """Reason -> SQL: whether a row is deferred for it; empty if none can be. Raises ValueError for a bad digest."""
    tests = {} if horizon is None else {LATE: f"ts < {since_epoch(horizon)}"}
    if hot_keys:
        named = ", ".join(f"'{bytes.fromhex(key).hex()}'" for key in hot_keys)
        tests[HOT_KEY] = f"{digest(d)} IN ({named})"
    return tests


def counted_now(rows: str, d: Dialect, horizon: datetime | None, hot_keys: Sequence[str]) -> str:
    """SELECT of the rows of the SELECT `rows` that count at once."""
    tests = deferred(d, horizon, hot_keys).values()
    return f"SELECT * FROM ({rows}) WHERE {' AND '.join(f'NOT ({test})' for test in tests)}" if tests else rows
