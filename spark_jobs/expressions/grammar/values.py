"""Rules for literals, casts and arithmetic."""

from functools import reduce

from sqlglot import exp

from spark_jobs.expressions import literals
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar.scope import BINARY, Rule, Scope, calls
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.tree import Node, attempted, literal
from spark_jobs.expressions.typing_rules import call, cast

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
