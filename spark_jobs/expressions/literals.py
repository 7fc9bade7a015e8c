"""Literals: read once in Python, so that no engine's reading of them matters.

text of a literal -> value, or Refused
"""

import math
import re
from datetime import UTC, datetime

from sqlglot import exp

from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.operations.numeric import MAX_BIGINT, MIN_BIGINT
from spark_jobs.expressions.tree import Node, literal

_DAY = r"\d{4}-\d\d-\d\d"
_INSTANT = rf"{_DAY}(?:[ T]\d\d:\d\d:\d\d(?:\.\d{{1,6}})?)?Z?"
_MICROS = {"MICROSECOND": 1, "MILLISECOND": 10**3, "SECOND": 10**6, "MINUTE": 60 * 10**6, "HOUR": 3600 * 10**6}
_MICROS |= {"DAY": 24 * _MICROS["HOUR"], "WEEK": 7 * 24 * _MICROS["HOUR"]}
# Less than the range of instants, so that a sum with an instant is never an overflow.
_LONGEST = 10_000 * 366 * _MICROS["DAY"]


def number(text: str, negative: bool = False) -> Node:
    """5 is a BIGINT, 5e0 a DOUBLE; 5.0 would be a DECIMAL in Spark and is refused."""
    if "e" in text.lower():
        return double(text, negative)
    if not text.isdigit():
        raise Refused(f"{text} is a DECIMAL", f"write {text}D for a DOUBLE, or keep money in integer cents")
    value = -int(text) if negative else int(text)
    if not MIN_BIGINT <= value <= MAX_BIGINT:
        raise Refused(f"{value} is outside of BIGINT")
    return literal("BIGINT", value)


def double(text: str, negative: bool = False) -> Node:
    value = float(text)
    if not math.isfinite(value):
        raise Refused(f"{text} is outside of DOUBLE")
    return literal("DOUBLE", -value if negative else value)


def instant(text: str) -> Node:
    """`YYYY-MM-DD[ HH:MM:SS[.ffffff]][Z]`, in UTC."""
    at = _read(_INSTANT, text)
    if at is None:
        raise Refused(f"TIMESTAMP '{text}' is no instant", "TIMESTAMP '2026-01-31 12:00:00.000'")
    return literal("TIMESTAMP", since_epoch(at))


def day(text: str) -> Node:
    """`YYYY-MM-DD`."""
    at = _read(_DAY, text)
    if at is None:
        raise Refused(f"DATE '{text}' is no date", "DATE '2026-01-31'")
    return literal("DATE", at.date().isoformat())


def _read(pattern: str, text: str) -> datetime | None:
    """What the calendar has, in the one form: Python reads others too."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC) if re.fullmatch(pattern, text, re.ASCII) else None
    except ValueError:
        return None


def micros(unit: str) -> int:
    """The length of a unit of fixed length in microseconds."""
    name = unit.upper().removesuffix("S")
    if name not in _MICROS:
        raise Refused(f"unit {unit}", f"units of fixed length: {', '.join(_MICROS)}")
    return _MICROS[name]


def duration(text: str) -> int:
    """`10 seconds` in microseconds."""
    found = re.fullmatch(r"\s*(-?\d{1,18})\s+([a-z]+)\s*", text, re.ASCII | re.IGNORECASE)
    if not found:
        raise Refused(f"{text!r} is no duration", "write a whole number and one unit: '10 seconds'")
    length = int(found[1]) * micros(found[2])
    if abs(length) > _LONGEST:
        raise Refused(f"{text!r} is longer than the range of instants")
    return length


def interval(tree: exp.Interval) -> int:
    """A sqlglot interval of one whole number and one unit, in microseconds."""
    amount, unit = tree.this, tree.args.get("unit")
    if not isinstance(amount, exp.Literal) or not isinstance(unit, exp.Var):
        raise Refused(f"`{tree.sql('spark')}` is no literal of one unit", "INTERVAL '10' SECOND")
    return duration(f"{amount.this} {unit.name}")


def integer(tree: exp.Expression) -> int | None:
    """The value of a whole-number literal (with sign, brackets, or the product that sqlglot makes of date_sub)."""
    match tree:
        case exp.Literal(is_string=False) if tree.this.isdigit():
            return int(tree.this)
        case exp.Neg() | exp.Paren():
            inner = integer(tree.this)
            return inner if inner is None or isinstance(tree, exp.Paren) else -inner
        case exp.Mul():
            left, right = integer(tree.this), integer(tree.expression)
            return None if left is None or right is None else left * right
    return None


def whole(tree: exp.Expression | None, what: str, least: int, most: int) -> int:
    """A literal integer within bounds."""
    value = integer(tree) if tree is not None else None
    if value is None or not least <= value <= most:
        raise Refused(f"{what} must be a whole number from {least} to {most}, written out")
    return value


def text(tree: exp.Expression | None, what: str) -> str:
    """A string literal that is not empty."""
    if not isinstance(tree, exp.Literal) or not tree.is_string or not tree.this:
        raise Refused(f"{what} must be a string literal, not empty")
    return str(tree.this)
