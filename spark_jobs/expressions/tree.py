"""The typed tree between the parser and the renderers."""

from dataclasses import dataclass, replace
from typing import Literal as Lit

from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.operations import Operation

# NULL is the kind of a bare NULL until its neighbours give it one.
NodeKind = Kind | Lit["NULL"]
# An operation of the positive list, or what renderers spell themselves.
Op = Operation | Lit["column", "literal", "case", "coalesce", "and", "or"]
Value = int | float | str | bool | None


@dataclass(frozen=True)
class Node:
    """One operation over typed arguments; `value` is a literal's value or a column's name.

    TIMESTAMP literals hold microseconds since 1970-01-01 UTC, DATE literals the text `YYYY-MM-DD`.
    """

    op: Op
    kind: NodeKind
    args: tuple["Node", ...] = ()
    value: Value = None


def literal(kind: NodeKind, value: Value) -> Node:
    return Node("literal", kind, (), value)


def column_of(node: Node) -> str | None:
    """The name of the column that the node is, None where it is something else."""
    return str(node.value) if node.op == "column" else None


def attempted(node: Node) -> Node:
    """NULL instead of a failure of this one operation."""
    assert isinstance(node.op, Operation)
    return replace(node, op=replace(node.op, fails=False, nulls="own"))
