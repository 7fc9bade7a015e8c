"""Rules for functions whose arguments are checked here: patterns, positions, units, widths."""

from sqlglot import exp

from spark_jobs.expressions import literals, patterns
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar.scope import BINARY, Rule, Scope, calls
from spark_jobs.expressions.operations.instant import MIN_INSTANT, UNITS
from spark_jobs.expressions.tree import Node, literal
from spark_jobs.expressions.typing_rules import call, require

_INT_MAX = 2**31 - 1


def like(scope: Scope, tree: exp.Expression) -> Node:
    pattern = patterns.check_like(literals.text(tree.expression, "the pattern of LIKE"))
    node = call("like", scope.typed(tree.this), literal("STRING", pattern))
    return call("not", node) if tree.args.get("negate") else node


def split(scope: Scope, tree: exp.Expression) -> Node:
    pattern = patterns.split_pattern(literals.text(tree.expression, "the pattern of split"))
    return call("split", scope.typed(tree.this), literal("STRING", pattern))


def substring(scope: Scope, tree: exp.Expression) -> Node:
    start = literals.whole(tree.args.get("start"), "the start of substring", 1, _INT_MAX)
    length = tree.args.get("length")
    count = literals.whole(length, "the length of substring", 0, _INT_MAX) if length else _INT_MAX
    return call("substring", scope.typed(tree.this), literal("BIGINT", start), literal("BIGINT", count))


def trim(scope: Scope, tree: exp.Expression) -> Node:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(tree.args.get("position")), "trim")
    return call(name, scope.typed(tree.this))


def replace_text(scope: Scope, tree: exp.Expression) -> Node:
    searched = literal("STRING", literals.text(tree.expression, "the searched text of replace"))
    if tree.args.get("replacement") is None:
        raise Refused("replace takes three arguments", "replace(x, 'a', '')")
    return call("replace", scope.typed(tree.this), searched, scope.typed(tree.args["replacement"]))


def instr(scope: Scope, tree: exp.Expression) -> Node:
    searched = literals.text(tree.args.get("substr"), "the searched text of instr")
    return call("instr", scope.typed(tree.this), literal("STRING", searched))


def shift(name: str) -> tuple[str, Rule]:
    """+ and -: arithmetic, or an instant and an interval."""
    arithmetic = calls(name, BINARY)[1]

    def build(scope: Scope, tree: exp.Expression) -> Node:
        if not isinstance(tree.expression, exp.Interval):
            return arithmetic(scope, tree)
        instant = require(scope.typed(tree.this), "TIMESTAMP", "what an interval is added to")
        op = "plus_micros" if name == "add" else "minus_micros"
        return call(op, instant, literal("BIGINT", literals.interval(tree.expression)))

    return BINARY, build


def date_trunc(scope: Scope, tree: exp.Expression) -> Node:
    unit = tree.args["unit"].name.upper()
    if unit not in UNITS:
        raise Refused(f"date_trunc to {unit}", f"units: {', '.join(UNITS)}")
    return call("date_trunc", literal("STRING", unit), scope.typed(tree.this))


def date_add(scope: Scope, tree: exp.Expression) -> Node:
    days = literals.whole(tree.expression, "the days of date_add", -4_000_000, 4_000_000)
    day = require(scope.typed(tree.this), "DATE", "the first argument of date_add")
    return call("plus_days", day, literal("BIGINT", days))


def timestampdiff(scope: Scope, tree: exp.Expression) -> Node:
    unit = literal("BIGINT", literals.micros(tree.args["unit"].name))
    return call("timestampdiff", unit, scope.typed(tree.expression), scope.typed(tree.this))


def _window_start(scope: Scope, width: exp.Expression, instant: exp.Expression) -> Node:
    micros = literals.duration(literals.text(width, "the width of window_start"))
    if not 0 < micros <= 366 * literals.micros("DAY"):
        raise Refused("the width of window_start", "more than nothing, at most 366 days")
    above_zero = -(MIN_INSTANT // micros) * micros
    start = call("window_start", literal("BIGINT", micros), literal("BIGINT", above_zero), scope.typed(instant))
    if MIN_INSTANT % micros == 0:
        return start
    return call("plus_micros", start, literal("BIGINT", 0))  # the first window starts before the first instant


def _get(scope: Scope, array: exp.Expression, position: exp.Expression) -> Node:
    values = scope.typed(array)
    return call("get", values, literal("BIGINT", literals.whole(position, "the position of get", 0, _INT_MAX - 1)))


_FUNCTIONS = {"window_start": _window_start, "get": _get}


def named(scope: Scope, tree: exp.Expression) -> Node:
    """Functions that sqlglot has no class for."""
    function = _FUNCTIONS.get(str(tree.this).lower())
    if function is None or len(tree.expressions) != 2:
        raise Refused(
            f"`{tree.sql('spark')}`: the function {tree.this} is not in the subset", "see docs/expressions.md"
        )
    return function(scope, *tree.expressions)
