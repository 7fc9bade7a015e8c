"""Rules for conditions and choices."""

from itertools import chain
from typing import Literal

from sqlglot import exp

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar.scope import BINARY, Rule, Scope
from spark_jobs.expressions.tree import Node, is_literal, literal
from spark_jobs.expressions.typing_rules import call, require, unify


def logic(op: Literal["and", "or"]) -> tuple[str, Rule]:
    def build(scope: Scope, tree: exp.Expression) -> Node:
        sides = scope.each([tree.this, tree.expression])
        return Node(op, "BOOLEAN", tuple(require(side, "BOOLEAN", f"a side of {op.upper()}") for side in sides))

    return BINARY, build


def not_same(scope: Scope, tree: exp.Expression) -> Node:
    return call("not", call("same", *scope.each([tree.this, tree.expression])))


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
    if not values or not all(is_literal(value) for value in values):
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
