"""What a statement may compute with: what Spark and this door's engine take alike.

A name that both have is not enough: `dayofweek` begins with 1 in Spark, with 0 in DuckDB. So there is a list, and
tests/spark/test_second_door.py holds each entry to Spark's own answer; anything else is refused by name.
"""

from functools import reduce

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
ARE_TEXTS = (
    exp.DPipe, exp.Concat, exp.ConcatWs, exp.Lower, exp.MD5, exp.Replace, exp.Substring, exp.Trim, exp.Upper,
)  # fmt: skip
WRITTEN_OTHERWISE = ("DOUBLE", "FLOAT", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
"""DuckDB's types whose values are other texts in Spark."""


def unlike(node: exp.Expression) -> str | None:
    """What of a node is not alike, in words; None where all is."""
    if isinstance(node, exp.Bracket):  # outside of the list an error, or NULL
        return str(node.sql("spark"))[:80]
    return _unlike(node) if isinstance(node, exp.Func) else None


def _unlike(function: exp.Func) -> str | None:
    if type(function) not in ALIKE:
        return str(function.sql("spark"))[:80]
    if isinstance(function, CASTS) and function.to.this not in TYPES:
        return f"a cast to {function.to.sql('spark')}"
    return None


def as_in_spark(tree: exp.Query) -> None:
    """Write into the tree what DuckDB would take otherwise: zeros, whole numbers, days, patterns, NULLs, texts."""
    for node in [*tree.find_all(exp.Div, exp.Mod, exp.IntDiv)]:
        if not (isinstance(node.expression, exp.Literal) and float(node.expression.this)):
            node.set("expression", _not_zero(node.expression))
    for node in [*tree.find_all(exp.Floor, exp.Ceil)]:
        if not node.args.get("decimals"):
            node.replace(exp.Cast(this=node.copy(), to=exp.DataType.build("BIGINT")))
    for node in [*tree.find_all(exp.TsOrDsAdd)]:
        node.replace(exp.Cast(this=node.copy(), to=exp.DataType.build("DATE")))
    for node in [*tree.find_all(exp.Like, exp.ILike)]:
        if not isinstance(node.parent, exp.Escape) and not _is_plain(node.expression):
            node.replace(exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")))
    for node in [*tree.find_all(exp.ArrayContains)]:
        node.replace(exp.Paren(this=exp.Or(this=node.copy(), expression=_null_where_one_is(node.this))))
    _join_as_in_spark(tree)


def _join_as_in_spark(tree: exp.Query) -> None:
    """Inner ones first: what is around one has a copy of it."""
    for node in reversed([*tree.find_all(exp.DPipe, exp.Concat, exp.ConcatWs)]):
        for part in [*node.iter_expressions()]:
            if not (isinstance(part, ARE_TEXTS) or part.is_string):
                part.replace(_alike_as_text(part))
    for node in [node for node in tree.find_all(exp.Concat) if type(node) is exp.Concat]:
        joined = reduce(lambda left, right: exp.DPipe(this=left, expression=right), node.expressions)
        node.replace(exp.Paren(this=joined))


def _is_plain(pattern: exp.Expression) -> bool:
    return isinstance(pattern, exp.Literal) and "\\" not in pattern.this


def _null_where_one_is(items: exp.Expression) -> exp.Expression:
    """NULL where an item of the list is, else false: whether a value is among unknown ones is unknown."""
    known, every = (exp.Anonymous(this=name, expressions=[items.copy()]) for name in ("list_count", "len"))
    return exp.Case(ifs=[exp.If(this=exp.LT(this=known, expression=every), true=exp.null())], default=exp.false())


def _alike_as_text(value: exp.Expression) -> exp.Expression:
    """The value, which is an error where the engines write it otherwise."""
    kinds = [exp.Literal.string(kind) for kind in WRITTEN_OTHERWISE]
    is_unlike = exp.In(this=exp.Anonymous(this="typeof", expressions=[value.copy()]), expressions=kinds)
    text = "a DOUBLE or TIMESTAMP within a text is written otherwise by Spark: cast it to DECIMAL, or to DATE"
    error = exp.Anonymous(this="error", expressions=[exp.Literal.string(text)])
    return exp.Case(ifs=[exp.If(this=is_unlike, true=error)], default=value.copy())


def _not_zero(divisor: exp.Expression) -> exp.Expression:
    """The divisor, which is an error where it is zero."""
    is_zero = exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0))
    error = exp.Anonymous(this="error", expressions=[exp.Literal.string("division by zero: try_divide gives NULL")])
    return exp.Case(ifs=[exp.If(this=is_zero, true=error)], default=divisor)
