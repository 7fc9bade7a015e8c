"""The positive list of sqlglot's node classes: class -> (arguments that its rule reads, the rule)."""

from sqlglot import exp

from spark_jobs.expressions.grammar import functions, values
from spark_jobs.expressions.grammar.scope import BINARY, Rule, Scope, calls
from spark_jobs.expressions.tree import literal
from spark_jobs.expressions.typing_rules import call, cast

# sqlglot's names of these are ours.
_OF_ONE: tuple[type[exp.Expression], ...] = (
    *(exp.Abs, exp.Sqrt, exp.Floor, exp.Ceil, exp.Round, exp.Not, exp.Length, exp.Lower, exp.Upper),
    *(exp.Year, exp.Quarter, exp.Month, exp.Day, exp.DayOfWeek, exp.Hour, exp.Minute, exp.Second),
)
_OF_TWO: tuple[type[exp.Expression], ...] = (exp.Mod, exp.Contains, exp.StartsWith, exp.EndsWith, exp.DateDiff)

RULES: dict[type[exp.Expression], tuple[str, Rule]] = {
    exp.Column: ("this", Scope.column),
    exp.Paren: ("this", lambda scope, tree: scope.typed(tree.this)),
    exp.Literal: ("this is_string", values.number_or_text),
    exp.Boolean: ("this", lambda _, tree: literal("BOOLEAN", bool(tree.this))),
    exp.Null: ("", lambda *_: literal("NULL", None)),
    exp.Cast: ("this to", values.exact_cast),
    exp.TryCast: ("this to", values.exact_cast),
    exp.Neg: ("this", values.negative),
    exp.Add: functions.shift("add"),
    exp.Sub: functions.shift("subtract"),
    exp.Mul: calls("multiply", BINARY),
    exp.Div: calls("divide", BINARY),
    exp.IntDiv: calls("div", BINARY),
    exp.SafeAdd: values.attempt("add"),
    exp.SafeSubtract: values.attempt("subtract"),
    exp.SafeMultiply: values.attempt("multiply"),
    exp.SafeDivide: values.attempt("divide"),
    exp.EQ: calls("eq", BINARY),
    exp.NEQ: calls("ne", BINARY),
    exp.LT: calls("lt", BINARY),
    exp.LTE: calls("le", BINARY),
    exp.GT: calls("gt", BINARY),
    exp.GTE: calls("ge", BINARY),
    exp.NullSafeEQ: calls("same", BINARY),
    exp.NullSafeNEQ: (BINARY, lambda scope, tree: call("not", calls("same", BINARY)[1](scope, tree))),
    exp.Is: (BINARY, values.is_value),
    exp.And: values.logic("and"),
    exp.Or: values.logic("or"),
    exp.Between: ("this low high", values.between),
    exp.In: ("this expressions", values.in_list),
    exp.Case: ("this ifs default", values.case),
    exp.If: ("this true false", values.if_else),
    exp.Coalesce: ("this expressions", values.coalesce),
    exp.Nullif: (BINARY, values.nullif),
    exp.Greatest: values.fold("greatest"),
    exp.Least: values.fold("least"),
    exp.Concat: values.fold("concat", "expressions"),
    exp.DPipe: calls("concat", BINARY),
    exp.Like: ("this expression negate", functions.like),
    exp.RegexpSplit: (BINARY, functions.split),
    exp.Substring: ("this start length", functions.substring),
    exp.Trim: ("this position", functions.trim),
    exp.Replace: ("this expression replacement", functions.replace_text),
    exp.StrPosition: ("this substr", functions.instr),
    exp.ArraySize: calls("size"),
    exp.TimestampTrunc: ("this unit", functions.date_trunc),
    exp.TsOrDsToDate: ("this", lambda scope, tree: cast(scope.typed(tree.this), "DATE")),
    exp.TsOrDsAdd: ("this expression unit", functions.date_add),
    exp.TimestampDiff: ("this expression unit", functions.timestampdiff),
    exp.UnixMicros: calls("unix_micros"),
    exp.UnixMillis: calls("unix_millis"),
    exp.UnixSeconds: calls("unix_seconds"),
    **{function: calls(function.key) for function in _OF_ONE},
    **{function: calls(function.key, BINARY) for function in _OF_TWO},
    exp.Anonymous: ("this expressions", functions.named),
}

__all__ = ["RULES", "Scope"]
