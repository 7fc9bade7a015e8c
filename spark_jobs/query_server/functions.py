"""What a statement may compute with: what Spark and this door's engine take alike.

A name that both have is not enough: `dayofweek` begins with 1 in Spark, with 0 in DuckDB. So there is a list, of
functions and of what they may be given, and tests/spark/test_second_door.py holds each entry to Spark's own answer;
anything else is refused by name. What can be written so that both mean the same is: `meaning`.
"""

from collections.abc import Callable, Mapping

from sqlglot import exp

AGGREGATES = (
    exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Avg, exp.Count, exp.CountIf, exp.LogicalAnd, exp.LogicalOr, exp.Max,
    exp.Median, exp.Min, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Sum, exp.Variance, exp.VariancePop,
)  # fmt: skip
WINDOWS = (
    exp.CumeDist, exp.DenseRank, exp.FirstValue, exp.Lag, exp.LastValue, exp.Lead, exp.Ntile, exp.PercentRank,
    exp.Rank, exp.RowNumber,
)  # fmt: skip
NUMBERS = (
    exp.Abs, exp.Ceil, exp.Exp, exp.Floor, exp.Greatest, exp.Least, exp.Ln, exp.Pow, exp.Round, exp.SafeDivide,
    exp.Sign, exp.Sqrt,
)  # fmt: skip
TEXTS = (
    exp.Concat, exp.ConcatWs, exp.Contains, exp.EndsWith, exp.Length, exp.Lower, exp.MD5, exp.RegexpLike, exp.Replace,
    exp.StartsWith, exp.Substring, exp.Trim, exp.Upper,
)  # fmt: skip
TIMES = (
    exp.CurrentDate, exp.CurrentTimestamp, exp.DateDiff, exp.Day, exp.DayOfMonth, exp.Extract, exp.Hour,
    exp.Minute, exp.Month, exp.Quarter, exp.Second, exp.TimestampTrunc, exp.TsOrDsAdd, exp.TsOrDsToDate, exp.UnixMicros,
    exp.Year,
)  # fmt: skip
LISTS = (exp.Array, exp.ArrayContains, exp.ArraySize, exp.Explode)
CHOICES = (exp.Case, exp.Coalesce, exp.If, exp.Nullif, exp.Exists, exp.And, exp.Or)
CASTS = (exp.Cast, exp.TryCast)
ALIKE = frozenset((*AGGREGATES, *WINDOWS, *NUMBERS, *TEXTS, *TIMES, *LISTS, *CHOICES, *CASTS))

TYPES = frozenset(
    {exp.DataType.Type[name] for name in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "DOUBLE", "DECIMAL", "BOOLEAN")}
)
"""What a value may be cast to. Numbers are cut to integers by Spark and rounded by DuckDB, and texts of numbers and
times differ."""
EXTRACTED = ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE")
"""Others begin with another number, or have fractions."""
TRUNCATED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")
DIGITS = 18
"""Most places to round to."""


def unlike(node: exp.Expression) -> str | None:
    """What of a node is not alike, in words; None where all is."""
    if isinstance(node, exp.Bracket):  # outside of the list an error, or NULL
        return _shown(node)
    return _unlike(node) if isinstance(node, exp.Func) else None


def _unlike(function: exp.Func) -> str | None:
    if type(function) not in ALIKE or not GIVEN.get(type(function), _anything)(function):
        return _shown(function)
    if isinstance(function, CASTS) and not _is_alike(function.to):
        return f"a cast to {function.to.sql('spark')}"
    return None


def _is_alike(kind: exp.DataType) -> bool:
    """A DECIMAL without its digits has others in each engine."""
    return kind.this in TYPES and (kind.this != exp.DataType.Type.DECIMAL or bool(kind.expressions))


def _anything(_: exp.Func) -> bool:
    return True


def _by(units: tuple[str, ...], place: str) -> Callable[[exp.Func], bool]:
    """Whether the unit is one of these."""
    return lambda function: str(function.args[place]).upper() in units


def _without(place: str) -> Callable[[exp.Func], bool]:
    return lambda function: function.args.get(place) is None


def _places(function: exp.Func) -> bool:
    places = whole(function.args.get("decimals") or exp.Literal.number(0))
    return places is not None and 0 <= places <= DIGITS


def _part(function: exp.Func) -> bool:
    """From a place that is written out; as many as are, too."""
    length = whole(function.args.get("length") or exp.Literal.number(0))
    return whole(function.args["start"]) is not None and length is not None and length >= 0


def whole(value: exp.Expression) -> int | None:
    """The whole number that is written there; None where it is anything else."""
    number, sign = (value.this, -1) if isinstance(value, exp.Neg) else (value, 1)
    is_whole = isinstance(number, exp.Literal) and not number.is_string and number.this.isdecimal()
    return sign * int(number.this) if is_whole else None


def _shown(node: exp.Expression) -> str:
    return str(node.sql("spark"))[:80]


GIVEN: Mapping[type[exp.Expression], Callable[[exp.Func], bool]] = {
    exp.ArgMax: _without("count"),
    exp.ArgMin: _without("count"),
    exp.Ceil: _without("decimals"),
    exp.DateDiff: _by(("DAY",), "unit"),
    exp.Extract: _by(EXTRACTED, "this"),
    exp.Floor: _without("decimals"),
    exp.Round: _places,
    exp.Substring: _part,
    exp.TimestampTrunc: _by(TRUNCATED, "unit"),
    exp.TsOrDsAdd: _by(("DAY",), "unit"),
}
"""What these may be given; the others, anything."""
