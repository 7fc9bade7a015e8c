"""Rules for literals, casts, arithmetic, conditions and choices."""

from functools import reduce
from itertools import chain
from typing import Literal

from sqlglot import exp

from spark_jobs.expressions import literals
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar.scope import BINARY, Rule, Scope, calls
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.tree import Node, attempted, literal
from spark_jobs.expressions.typing_rules import call, cast, require, unify

_TYPES: dict[str, Kind] = {
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "TEXT": "STRING",
    "BOOLEAN": "BOOLEAN",
    "TIMESTAMPTZ": "TIMESTAMP",
    "DATE": "DATE",
}
_TYPE_HINTS = {"DECIMAL": "keep money in integer cents", "INT": "integers are BIGINT", "FLOAT": "write DOUBLE"}


def number_or_text(_: Scope, tree: exp.Expression) -> Node:
    return literal("STRING", tree.this) if tree.is_string else literals.number(tree.this)


def negative(scope: Scope, tree: exp.Expression) -> Node:
    """-5 is a literal, as is -5L; so that -2^63 can be written."""
    suffix = tree.this.args["to"].this.name if isinstance(tree.this, exp.TryCast) else ""
    number = tree.this.this if suffix in ("BIGINT", "DOUBLE") else tree.this
    if isinstance(number, exp.Literal) and not number.is_string:
        read = literals.double if suffix == "DOUBLE" else literals.number
        return read(number.this, negative=True)
    return call("negate", scope.typed(tree.this))


def exact_cast(scope: Scope, tree: exp.Expression) -> Node:
    """CAST, the typed literals (TIMESTAMP '..', 5L, 1.5D), and try_cast, which alone is marked safe."""
    name = tree.args["to"].this.name
    to = _TYPES.get(name)
    if to is None or tree.args["to"].expressions:
        raise Refused(
            f"type {tree.args['to'].sql('spark')}", _TYPE_HINTS.get(name, f"types: {', '.join(_TYPES.values())}")
        )
    source = tree.this
    if isinstance(source, exp.Literal) and source.is_string and to in ("TIMESTAMP", "DATE"):
        return literals.instant(source.this) if to == "TIMESTAMP" else literals.day(source.this)
    if isinstance(source, exp.Literal) and not source.is_string and to == "DOUBLE":
        return literals.double(source.this)
    node = scope.typed(source)
    is_attempt = isinstance(tree, exp.TryCast) and tree.args.get("safe") and node.kind not in (to, "NULL")
    return attempted(cast(node, to)) if is_attempt else cast(node, to)


def attempt(name: str) -> tuple[str, Rule]:
    """try_divide and its kin."""
    return BINARY, lambda scope, tree: attempted(calls(name, BINARY)[1](scope, tree))


def fold(name: str, reads: str = "this expressions") -> tuple[str, Rule]:
    """greatest(a, b, c) is greatest(greatest(a, b), c)."""

    def build(scope: Scope, tree: exp.Expression) -> Node:
        nodes = scope.each([*([tree.this] if tree.this else []), *tree.expressions])
        if len(nodes) < 2:
            raise Refused(f"{name} takes at least two arguments")
        return reduce(lambda left, right: call(name, left, right), nodes)

    return reads, build


def logic(op: Literal["and", "or"]) -> tuple[str, Rule]:
    def build(scope: Scope, tree: exp.Expression) -> Node:
        sides = scope.each([tree.this, tree.expression])
        return Node(op, "BOOLEAN", tuple(require(side, "BOOLEAN", f"a side of {op.upper()}") for side in sides))

    return BINARY, build


def is_value(scope: Scope, tree: exp.Expression) -> Node:
    node, right = scope.typed(tree.this), tree.expression
    if isinstance(right, exp.Null):
        return call("is_null", node)
    if isinstance(right, exp.Boolean):
        return call("same", require(node, "BOOLEAN", "the left side of IS"), scope.typed(right))
    raise Refused(f"`{tree.sql('spark')}`", "IS [NOT] NULL, TRUE or FALSE")


def between(scope: Scope, tree: exp.Expression) -> Node:
    node, low, high = scope.each([tree.this, tree.args["low"], tree.args["high"]])
    return Node("and", "BOOLEAN", (call("ge", node, low), call("le", node, high)))


def in_list(scope: Scope, tree: exp.Expression) -> Node:
    values = scope.each(tree.expressions)
    if not values or any(value.op != "literal" or value.value is None for value in values):
        raise Refused("IN takes literals that are not NULL", "write x = a OR x = b")
    node = call("in", scope.typed(tree.this), *values)
    if node.args[0].kind == "DOUBLE":
        raise Refused("IN over DOUBLE", "compare: Spark tells -0.0 from 0.0 in long lists, and only there")
    return node


def case(scope: Scope, tree: exp.Expression) -> Node:
    subject = scope.typed(tree.this) if tree.this else None
    arms = tree.args["ifs"]
    whens = scope.each([arm.this for arm in arms])
    conditions = [call("eq", subject, when) if subject else require(when, "BOOLEAN", "WHEN") for when in whens]
    return _choice(scope, conditions, arms, tree.args.get("default"))


def if_else(scope: Scope, tree: exp.Expression) -> Node:
    condition = require(scope.typed(tree.this), "BOOLEAN", "the condition of if()")
    return _choice(scope, [condition], [tree], tree.args.get("false"))


def _choice(scope: Scope, conditions: list[Node], arms: list[exp.Expression], default: exp.Expression | None) -> Node:
    """Arguments: condition, result, condition, result, .., else."""
    results = scope.each([arm.args["true"] for arm in arms])
    otherwise = scope.typed(default) if default is not None else literal("NULL", None)
    *branches, last = unify([*results, otherwise], "results of CASE")
    pairs = chain.from_iterable(zip(conditions, branches, strict=True))
    return Node("case", last.kind, (*pairs, last))


def nullif(scope: Scope, tree: exp.Expression) -> Node:
    """Spark gives the first argument's kind, whatever the second one widens it to."""
    left, right = scope.each([tree.this, tree.expression])
    if {left.kind, right.kind} == {"BIGINT", "DOUBLE"}:
        raise Refused("nullif of BIGINT and DOUBLE", "cast one of them")
    return call("nullif", left, right)


def coalesce(scope: Scope, tree: exp.Expression) -> Node:
    nodes = unify(scope.each([tree.this, *tree.expressions]), "arguments of coalesce")
    return Node("coalesce", nodes[0].kind, tuple(nodes)) if len(nodes) > 1 else nodes[0]
