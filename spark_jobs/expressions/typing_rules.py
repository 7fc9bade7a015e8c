"""Which operation a call means, and the widening of its arguments: NULL to any kind, BIGINT to DOUBLE, nothing else.

name + typed arguments -> typed node (or Refused)
"""

from operator import ne

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations import CASTS, OPERATIONS, Operation
from spark_jobs.expressions.tree import Node, NodeKind, literal

_HINTS: dict[frozenset[NodeKind], str] = {
    frozenset({"DATE", "TIMESTAMP"}): "cast one of them",
    frozenset({"STRING", "TIMESTAMP"}): "write TIMESTAMP '2026-01-31 00:00:00'",
    frozenset({"STRING", "DATE"}): "write DATE '2026-01-31'",
    frozenset({"STRING", "BIGINT"}): "write CAST(.. AS BIGINT), or quote the number",
    frozenset({"TIMESTAMP"}): "timestampdiff(MILLISECOND, from, to) is their difference",
    frozenset({"DATE"}): "datediff(to, from) is their difference in days",
    frozenset({"STRING", "DOUBLE"}): "write CAST(.. AS DOUBLE)",
}


def call(name: str, *args: Node) -> Node:
    """The node for the operation of the positive list that takes these arguments with the fewest conversions."""
    fitting = [(operation, wide) for operation in OPERATIONS[name] if (wide := _fit(operation, args))]
    if not fitting:
        raise Refused(*_mismatch(name, args))
    operation, widened = min(fitting, key=lambda fit: sum(map(ne, args, fit[1])))
    kind = widened[0].kind if operation.result == "T" else operation.result
    return Node(operation, kind, widened)


def _fit(operation: Operation, args: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """The arguments converted to what the operation takes, None where a kind does not fit."""
    parameters = operation.parameters
    if operation.variadic:
        parameters += (parameters[-1],) * (len(args) - len(parameters))
    if len(parameters) != len(args):
        return None
    common = common_kind([a.kind for a, p in zip(args, parameters, strict=True) if p == "T"])
    if "T" in parameters and (common is None or common == "ARRAY<STRING>"):
        return None
    wanted = [common if p == "T" else p for p in parameters]
    if not all(_widens(a.kind, k) for a, k in zip(args, wanted, strict=True)):
        return None
    return tuple(widen(a, k) for a, k in zip(args, wanted, strict=True))  # type: ignore[arg-type]


def _mismatch(name: str, args: tuple[Node, ...]) -> tuple[str, str]:
    kinds = [a.kind for a in args]
    takes = " or ".join(
        "(" + ", ".join("any kind" if p == "T" else p for p in o.parameters) + ")" for o in OPERATIONS[name]
    )
    return f"{name} of ({', '.join(kinds)})", _HINTS.get(frozenset(kinds), f"it takes {takes}")


def common_kind(kinds: list[NodeKind]) -> Kind | None:
    """The kind that all can be widened to; BOOLEAN where all are NULL, None where there is no such kind."""
    known = {k for k in kinds if k != "NULL"}
    if known == {"BIGINT", "DOUBLE"}:
        return "DOUBLE"
    if len(known) > 1:
        return None
    return known.pop() if known else "BOOLEAN"


def _widens(of: NodeKind, to: NodeKind | None) -> bool:
    return of == to or of == "NULL" or (of == "BIGINT" and to == "DOUBLE")


def widen(node: Node, to: Kind) -> Node:
    """The node as `to`; its kind is known to allow it."""
    if node.kind == to:
        return node
    if node.op == "literal":
        value = node.value
        return literal(to, float(value) if isinstance(value, int) and to == "DOUBLE" else value)
    return Node(CASTS[node.kind, to], to, (node,))


def unify(nodes: list[Node], what: str) -> list[Node]:
    """All nodes as their common kind."""
    kind = common_kind([n.kind for n in nodes])
    if kind is None:
        kinds = ", ".join(sorted({n.kind for n in nodes}))
        raise Refused(f"{what} of different kinds: {kinds}", "cast them to one kind")
    return [widen(n, kind) for n in nodes]


def cast(node: Node, to: Kind) -> Node:
    """An exact cast."""
    if node.kind in (to, "NULL"):
        return widen(node, to)
    if (node.kind, to) not in CASTS:
        known = ", ".join(sorted(b for a, b in CASTS if a == node.kind)) or "no kind"
        raise Refused(f"a cast from {node.kind} to {to} differs between the engines", f"{node.kind} casts to {known}")
    return Node(CASTS[node.kind, to], to, (node,))


def require(node: Node, kind: Kind, what: str) -> Node:
    """The node as `kind` without a cast."""
    if not _widens(node.kind, kind):
        raise Refused(f"{what} must be {kind}, and is {node.kind}")
    return widen(node, kind)
