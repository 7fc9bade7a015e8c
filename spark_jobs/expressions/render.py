"""Typed tree -> SQL of one engine: the value, and the condition under which a row's evaluation fails.

The value never raises. Where an operation fails its value is NULL; so for a chain of operations that hand NULL on,
"failed" is "nothing that went in is NULL, what came out is": one comparison, however long the chain. Operations that
do not hand NULL on (CASE, COALESCE, AND, OR ..) spell their failure out, branch by branch, with Spark's order of
evaluation: a failure in a branch that is not taken is no failure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind, duckdb_of, spark_of
from spark_jobs.expressions.operations import CASTS, OPERATIONS, Operation
from spark_jobs.expressions.tree import Node

Dialect = Literal["spark", "duckdb"]
# Some templates repeat an argument, so deeply nested text grows fast; and engines compile long text slowly.
LONGEST_SQL = 60_000


@dataclass(frozen=True)
class Rendered:
    """`value` is NULL if one of `needs` is NULL, or if it `can_fail` and does; `fails` holds all other failures."""

    value: str
    needs: tuple[str, ...] = ()
    can_fail: bool = False
    fails: str | None = None

    def failure(self) -> str | None:
        """The condition of every failure below, or None; never NULL."""
        if not self.can_fail:
            return self.fails
        inputs = "".join(f"{need} IS NOT NULL AND " for need in self.needs)
        return _any([self.fails, f"({inputs}{self.value} IS NULL)"])

    def total(self) -> str:
        """The value, NULL for each failing row."""
        return f"(CASE WHEN {self.fails} THEN NULL ELSE {self.value} END)" if self.fails else self.value


def render(node: Node, dialect: Dialect) -> Rendered:
    """The SQL of a tree whose kinds have been checked."""
    if node.op == "column":
        name = quote_name(str(node.value), dialect)
        return Rendered(name, needs=(name,))
    if node.op == "literal":
        value = literal_sql(node, dialect)
        return Rendered(value, needs=("NULL",) if node.value is None else ())
    args = [render(arg, dialect) for arg in node.args]
    if node.op in _CONDITIONALS:
        value, fails = _CONDITIONALS[node.op](args)
        rendered = Rendered(value, needs=(value,), fails=fails)
    else:
        rendered = _apply(node, args, dialect)
    if len(rendered.value) + len(rendered.fails or "") > LONGEST_SQL:
        raise Refused("it is nested too deeply", "split it up")
    return rendered


def operation_of(node: Node) -> Operation:
    """The entry of the positive list that a node stands for."""
    if node.op == "cast":
        found = CASTS[(node.args[0].kind, node.kind)]  # type: ignore[index]
    else:
        found = next(o for o in OPERATIONS[node.op] if _accepts(o, node))
    return replace(found, fails=False, nulls="own") if node.value == "try" else found


def _accepts(operation: Operation, node: Node) -> bool:
    kinds = [p for p in operation.parameters if p != "T"]
    found = [a.kind for a, p in zip(node.args, operation.parameters, strict=False) if p != "T"]
    return kinds == found and not ("T" in operation.parameters and node.args[0].kind == "ARRAY<STRING>")


def _apply(node: Node, args: list[Rendered], dialect: Dialect) -> Rendered:
    operation = operation_of(node)
    template = operation.spark if dialect == "spark" else operation.duckdb
    value = template.format(*(a.value for a in args), rest=", ".join(a.value for a in args[1:]))
    if operation.nulls != "strict":
        needs = (value,) if operation.nulls == "own" else ()
        return Rendered(value, needs, fails=_any([a.failure() for a in args]))
    return Rendered(
        value,
        needs=tuple(dict.fromkeys(need for a in args for need in a.needs)),
        can_fail=operation.fails or any(a.can_fail for a in args),
        fails=_any([a.fails for a in args]),
    )


def _any(conditions: list[str | None]) -> str | None:
    known = list(dict.fromkeys(c for c in conditions if c))
    return f"({' OR '.join(known)})" if len(known) > 1 else "".join(known) or None


def _and(args: list[Rendered]) -> tuple[str, str | None]:
    return _short_circuit(args, "AND", "FALSE")


def _or(args: list[Rendered]) -> tuple[str, str | None]:
    return _short_circuit(args, "OR", "TRUE")


def _short_circuit(args: list[Rendered], word: str, decides: str) -> tuple[str, str | None]:
    """The right side is evaluated unless the left one decides."""
    left, right = args
    later = right.failure()
    reached = f"({left.value} IS DISTINCT FROM {decides} AND {later})" if later else None
    return f"({left.value} {word} {right.value})", _any([left.failure(), reached])


def _coalesce(args: list[Rendered]) -> tuple[str, str | None]:
    """Each argument is evaluated if all before it are NULL."""
    fails: str | None = None
    for arg in reversed(args):
        later = f"({arg.value} IS NULL AND {fails})" if fails else None
        fails = _any([arg.failure(), later])
    return f"coalesce({', '.join(a.value for a in args)})", fails


def _case(args: list[Rendered]) -> tuple[str, str | None]:
    """Condition, value, condition, value, .., else: the shape of the arguments."""
    pairs = list(zip(args[:-1:2], args[1::2], strict=True))
    value = "".join(f"WHEN {c.value} THEN {v.value} " for c, v in pairs)
    sql = f"(CASE {value}ELSE {args[-1].value} END)"
    if not any(a.failure() for a in args):
        return sql, None
    arms = ""
    for condition, branch in pairs:
        failed = condition.failure()
        arms += f"WHEN {failed} THEN TRUE " if failed else ""
        arms += f"WHEN {condition.value} THEN {branch.failure() or 'FALSE'} "
    return sql, f"(CASE {arms}ELSE {args[-1].failure() or 'FALSE'} END)"


_CONDITIONALS: dict[str, Callable[[list[Rendered]], tuple[str, str | None]]] = {
    "and": _and,
    "or": _or,
    "coalesce": _coalesce,
    "case": _case,
}


def quote_name(name: str, dialect: Dialect) -> str:
    mark = "`" if dialect == "spark" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def quote_text(text: str, dialect: Dialect) -> str:
    """A string literal. Spark substitutes `${..}` in any SQL text, so the dollar is written as an escape."""
    if dialect == "duckdb":
        return "'" + text.replace("'", "''") + "'"
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


def literal_sql(node: Node, dialect: Dialect) -> str:
    """A literal of exactly the node's kind."""
    spark, value = dialect == "spark", node.value
    match node.kind:
        case _ if value is None:
            kind: Kind = "BOOLEAN" if node.kind == "NULL" else node.kind
            return f"CAST(NULL AS {spark_of(kind) if spark else duckdb_of(kind)})"
        case "BIGINT":
            return f"({value}L)" if spark else f"CAST({value} AS BIGINT)"
        case "DOUBLE":
            return f"({value!r}D)".upper() if spark else f"CAST('{value!r}' AS DOUBLE)"
        case "BOOLEAN":
            return str(value).upper()
        case "DATE":
            return f"DATE '{value}'"
        case "TIMESTAMP":
            return f"timestamp_micros({value}L)" if spark else f"make_timestamptz({value})"
        case _:
            return quote_text(str(value), dialect)
