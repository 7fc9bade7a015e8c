"""Typed tree -> SQL of one engine: the value, and the condition under which a row's evaluation fails.

The value never raises. Where an operation fails its value is NULL; so for a chain of operations that hand NULL on,
"failed" is "nothing that went in is NULL, what came out is": one comparison, however long the chain. Operations that
do not hand NULL on (CASE, COALESCE, AND, OR ..) spell their failure out, branch by branch, with Spark's order of
evaluation: a failure in a branch that is not taken is no failure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spark_jobs.expressions.dialect import Dialect, quote, quote_text, rendered, type_of
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.operations import Operation
from spark_jobs.expressions.tree import Node

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
        name = quote(str(node.value), dialect)
        return Rendered(name, needs=(name,))
    if node.op == "literal":
        value = literal_sql(node, dialect)
        return Rendered(value, needs=("NULL",) if node.value is None else ())
    args = [render(arg, dialect) for arg in node.args]
    if isinstance(node.op, Operation):
        result = _apply(node.op, args, dialect)
    else:
        value, fails = _CONDITIONALS[node.op](args)
        result = Rendered(value, needs=(value,), fails=fails)
    if len(result.value) + len(result.fails or "") > LONGEST_SQL:
        raise Refused("it is nested too deeply", "split it up")
    return result


def _apply(operation: Operation, args: list[Rendered], dialect: Dialect) -> Rendered:
    value = rendered(operation, dialect).format(*(a.value for a in args), rest=", ".join(a.value for a in args[1:]))
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


def _short_circuit(word: str, decides: str, args: list[Rendered]) -> tuple[str, str | None]:
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
    "and": partial(_short_circuit, "AND", "FALSE"),
    "or": partial(_short_circuit, "OR", "TRUE"),
    "coalesce": _coalesce,
    "case": _case,
}


def literal_sql(node: Node, dialect: Dialect) -> str:
    """A literal of exactly the node's kind."""
    spark, value = dialect is Dialect.SPARK, node.value
    match node.kind:
        case _ if value is None:
            return f"CAST(NULL AS {type_of('BOOLEAN' if node.kind == 'NULL' else node.kind, dialect)})"
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
