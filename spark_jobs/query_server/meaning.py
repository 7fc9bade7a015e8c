"""Write into a statement's tree what DuckDB would take otherwise than Spark, so that it is Spark's or an error.

tree of functions that are on the list -> each node by its rule, inner ones first -> the tree. Where types decide, which
a tree does not know, the engine looks at them as it begins: `typeof` of a column is a constant to it.
"""

import re
from collections.abc import Callable, Mapping
from functools import reduce

from sqlglot import exp

from spark_jobs.query_server.functions import whole

ARE_TEXTS = (
    exp.DPipe, exp.Concat, exp.ConcatWs, exp.Lower, exp.MD5, exp.Replace, exp.Substring, exp.Trim, exp.Upper,
)  # fmt: skip
WITH_A_TIME = ("TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
WRITTEN_OTHERWISE = ("DOUBLE", "FLOAT", *WITH_A_TIME)
"""DuckDB's types whose values are other texts in Spark."""
INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
WHOLE = r"\s*[+-]?\d+\s*"
"""Texts that both engines take for an integer."""
NUMBER, DATE = r"\s*[+-]?[\d.]", r"\d{4}-\d\d-\d\d.*"
COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between)
NO_FRACTION = 2.0**53
"""A greater DOUBLE is whole."""


def as_in_spark(tree: exp.Query) -> None:
    for node in reversed([*tree.walk()]):
        if (rule := RULES.get(type(node))) is not None:
            rule(node)


def _divide(node: exp.Expression) -> None:
    """Zero is an error, and so are DECIMALs, whose quotients Spark rounds."""
    text = "the quotient of a DECIMAL is rounded by Spark: write 2.0D, or cast it to DOUBLE"
    for side in _unknown_sides(node):
        node.set(side, _unless(_is_decimal(node.args[side]), text, node.args[side]))
    if not isinstance(node, exp.SafeDivide):
        _refuse_zero(node)


def _divide_whole(node: exp.Expression) -> None:
    text = "div is of integers alone"
    for side in _unknown_sides(node):
        node.set(side, _unless(exp.Not(this=_has_type(node.args[side], INTEGERS)), text, node.args[side]))
    _refuse_zero(node)


def _unknown_sides(node: exp.Expression) -> list[str]:
    """Those whose types only the engine knows; what it does with the text of a date rests on finding one there."""
    return [side for side in ("this", "expression") if whole(node.args[side]) is None and not node.args[side].is_string]


def _refuse_zero(node: exp.Expression) -> None:
    divisor = node.expression
    if not (isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.this)):
        is_zero = exp.EQ(this=divisor.copy(), expression=exp.Literal.number(0))
        node.set("expression", _unless(is_zero, "division by zero: try_divide gives NULL", divisor))


def _average(node: exp.Expression) -> None:
    text = "the average of a DECIMAL is rounded by Spark: cast it to DOUBLE"
    of = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    of.replace(_unless(_is_decimal(of), text, of.copy()))


def _is_a(kind: str) -> Callable[[exp.Expression], None]:
    return lambda node: node.replace(_cast(node.copy(), kind))


def _days_between(node: exp.Expression) -> None:
    """Spark has this function by two names, one of which counts days of 24 hours; the tree does not tell which."""
    text = "datediff of a TIMESTAMP: cast it to DATE"
    for side in _unknown_sides(node):
        node.set(side, _unless(_has_type(node.args[side], WITH_A_TIME), text, node.args[side]))


def _escape(node: exp.Expression) -> None:
    pattern = node.expression
    is_plain = isinstance(pattern, exp.Literal) and "\\" not in pattern.this
    if not isinstance(node.parent, exp.Escape) and not is_plain:
        node.replace(exp.Escape(this=node.copy(), expression=exp.Literal.string("\\")))


def _is_among(node: exp.Expression) -> None:
    """NULL where an item of the list is, else false: whether a value is among unknown ones is unknown."""
    known, every = (_call(name, node.this.copy()) for name in ("list_count", "len"))
    is_unknown = exp.If(this=exp.LT(this=known, expression=every), true=exp.null())
    either = exp.Or(this=node.copy(), expression=exp.Case(ifs=[is_unknown], default=exp.false()))
    node.replace(exp.Paren(this=either))


def _join(node: exp.Expression) -> None:
    """Parts that the engines write otherwise are an error; with one that is NULL all is, but for `concat_ws`."""
    text = "a DOUBLE or TIMESTAMP within a text is written otherwise by Spark: cast it to DECIMAL, or to DATE"
    for part in [*node.iter_expressions()]:
        if not (isinstance(part, ARE_TEXTS) or part.is_string):
            part.replace(_unless(_has_type(part, WRITTEN_OTHERWISE), text, part.copy()))
    if type(node) is exp.Concat:
        joined = reduce(lambda left, right: exp.DPipe(this=left, expression=right), node.expressions)
        node.replace(exp.Paren(this=joined))


def _at_the_most(node: exp.Expression) -> None:
    """Also where what is there is NULL."""
    name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
    node.replace(_call(name, node.this, node.expression))


def _logarithm(node: exp.Expression) -> None:
    is_there = exp.GT(this=node.this.copy(), expression=exp.Literal.number(0))
    node.replace(exp.Case(ifs=[exp.If(this=is_there, true=node.copy())]))


def _round(node: exp.Expression) -> None:
    """A DOUBLE as it is written, halves up: 1.005 is 1.01. By way of texts, as a CASE has one type for all."""
    if not (places := whole(node.args.get("decimals") or exp.Literal.number(0))):
        return
    value, written = node.this, _cast(node.this.copy(), "TEXT")
    large = exp.Not(this=exp.LT(this=exp.Abs(this=value.copy()), expression=exp.Literal.number(str(NO_FRACTION))))
    rounded = _cast(_cast(written.copy(), f"DECIMAL(38, {places})"), "TEXT")
    of_double = exp.Case(ifs=[exp.If(this=large, true=written)], default=rounded)
    is_double = exp.If(this=_has_type(value, ("DOUBLE",)), true=of_double)
    text = exp.Case(ifs=[is_double], default=_cast(node.copy(), "TEXT"))
    node.replace(_call("cast_to_type", text, node.copy()))


def _from_the_first(node: exp.Expression) -> None:
    if whole(node.args["start"]) == 0:
        node.set("start", exp.Literal.number(1))


def _to_decimal(node: exp.Expression) -> None:
    """A DOUBLE as it is written, halves up."""
    if node.to.this == exp.DataType.Type.DECIMAL:
        written = node.copy()
        written.set("this", _cast(node.this.copy(), "TEXT"))
        is_double = exp.If(this=_has_type(node.this, ("DOUBLE",)), true=written)
        node.replace(exp.Case(ifs=[is_double], default=node.copy()))


def _compare(node: exp.Expression) -> None:
    """A text that is compared with an integer is one, or an error: DuckDB would take '1.5' for 2."""
    sides = [*node.iter_expressions()]
    texts = [side for side in sides if isinstance(side, exp.Placeholder) or _is_another_number(side)]
    others = [side for side in sides if not (side in texts or side.is_string or side.find(exp.Query))]
    for text in texts:
        for other in others:
            of = exp.And(this=_has_type(other, INTEGERS), expression=_is_no_integer(text))
            sound = _unless(of, "a text that is no integer is compared with one", exp.true())
            new = exp.Paren(this=exp.And(this=sound, expression=node.copy()))
            node.replace(new)
            node = new.this.expression


def _is_another_number(side: exp.Expression) -> bool:
    """Whether it is a text that DuckDB might take for an integer, and Spark does not."""
    text = side.this if side.is_string else ""
    return re.match(NUMBER, text) is not None and not re.fullmatch(f"{WHOLE}|{DATE}", text, re.DOTALL)


def _is_no_integer(text: exp.Expression) -> exp.Expression:
    matches = _call("regexp_full_match", _cast(text.copy(), "TEXT"), exp.Literal.string(WHOLE))
    return exp.And(this=_has_type(text, ("VARCHAR",)), expression=exp.Not(this=matches))


def _has_type(value: exp.Expression, kinds: tuple[str, ...]) -> exp.Expression:
    return exp.In(this=_call("typeof", value.copy()), expressions=[exp.Literal.string(kind) for kind in kinds])


def _is_decimal(value: exp.Expression) -> exp.Expression:
    return _call("starts_with", _call("typeof", value.copy()), exp.Literal.string("DECIMAL"))


def _unless(fails: exp.Expression, text: str, value: exp.Expression) -> exp.Expression:
    """The value, which is an error where something holds."""
    return exp.Case(ifs=[exp.If(this=fails, true=_call("error", exp.Literal.string(text)))], default=value)


def _call(name: str, *arguments: exp.Expression) -> exp.Expression:
    return exp.Anonymous(this=name, expressions=[*arguments])


def _cast(value: exp.Expression, kind: str) -> exp.Expression:
    return exp.Cast(this=value, to=exp.DataType.build(kind))


RULES: Mapping[type[exp.Expression], Callable[[exp.Expression], None]] = {
    exp.ArgMax: _at_the_most,
    exp.ArgMin: _at_the_most,
    exp.ArrayContains: _is_among,
    exp.Avg: _average,
    exp.Cast: _to_decimal,
    exp.Ceil: _is_a("BIGINT"),
    exp.Concat: _join,
    exp.ConcatWs: _join,
    exp.DPipe: _join,
    exp.DateDiff: _days_between,
    exp.Div: _divide,
    exp.Floor: _is_a("BIGINT"),
    exp.ILike: _escape,
    exp.IntDiv: _divide_whole,
    exp.Like: _escape,
    exp.Ln: _logarithm,
    exp.Mod: _refuse_zero,
    exp.Round: _round,
    exp.SafeDivide: _divide,
    exp.Substring: _from_the_first,
    exp.TryCast: _to_decimal,
    exp.TsOrDsAdd: _is_a("DATE"),
} | dict.fromkeys(COMPARED, _compare)
