"""Calls of aggregates and window functions: of which value, over which rows, in which order.

sqlglot's node + scope -> Call, or Refused
"""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from sqlglot import exp

from spark_jobs.expressions import literals
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar import Scope
from spark_jobs.expressions.grammar.scope import refuse_unread
from spark_jobs.expressions.query.refusals import LISTED
from spark_jobs.expressions.query.typed import FUNCTIONS, KEY, TIME, Call, Function, Window
from spark_jobs.expressions.tree import Node, column_of, literal
from spark_jobs.expressions.typing_rules import call as operation
from spark_jobs.expressions.typing_rules import require

WINDOW = "this alias over partition_by order spec"
_MOST_ROWS = 2**31 - 1
# The sum of an instant and a bound is no overflow.
_LONGEST = 2**62


def call(scope: Scope, tree: exp.Expression) -> Call:
    """What a function's node stands for; its argument is typed in `scope`."""
    function = FUNCTIONS.get(type(tree))
    if function is None:
        raise Refused(f"`{tree.sql('spark')}`: no function over a window that is on the list", LISTED)
    refuse_unread(tree, "this offset")
    is_star = function.name == "count" and isinstance(tree.this, exp.Star) and not any(tree.this.args.values())
    arg = None if is_star or function.takes == "nothing" else _argument(function, scope.typed(tree.this))
    offset = tree.args.get("offset")
    distance = literals.whole(offset, f"the distance of {function.name}", 1, _MOST_ROWS) if offset else 1
    return Call(function, arg, distance)


def _argument(function: Function, node: Node) -> Node:
    if function.takes == "BIGINT" and node.kind == "DOUBLE":
        raise Refused(f"{function.name} of DOUBLE: its last bits depend on the order", "add up integers")
    if function.takes == "BIGINT":
        return require(node, "BIGINT", f"the argument of {function.name}")
    return comparable(node, f"the argument of {function.name}") if function.takes == "ordered" else node


def comparable(node: Node, what: str) -> Node:
    """The node with one zero: engines take -0.0 and 0.0 for equal, and keep either."""
    if node.kind == "ARRAY<STRING>":
        raise Refused(f"{what} is ARRAY<STRING>, which has no order")
    return operation("add", node, literal("DOUBLE", 0.0)) if node.kind == "DOUBLE" else node


def definition(tree: exp.Expression, named: Mapping[str, exp.Expression]) -> exp.Expression:
    """What a window says itself, or the one of the WINDOW clause that it names."""
    name = tree.args["alias"].name if tree.args.get("alias") else None
    if name is None:
        return tree
    if name not in named or any(tree.args.get(part) for part in ("partition_by", "order", "spec")):
        raise Refused(f"the window {name}", f"name one of WINDOW ({', '.join(named) or 'none'}), or write all of it")
    refuse_unread(named[name], "this partition_by order spec")
    return named[name]


def window(scope: Scope, tree: exp.Expression, function: Function, unique: frozenset[str] | None) -> Window:
    """The window of a definition; `unique`: the columns in which no two rows are alike."""
    partition = tuple(_partition(scope, by) for by in tree.args.get("partition_by") or [])
    order = tuple(_order(scope, by) for by in tree.args["order"].expressions) if tree.args.get("order") else ()
    if KEY not in map(column_of, partition):
        raise Refused("a window over several keys", f"PARTITION BY {KEY}: a key's results follow from its rows alone")
    spec = tree.args.get("spec")
    if spec and function.sees == "partition":
        raise Refused(f"{function.name} with a frame", "leave it out: the function sees the whole partition")
    by_row = function.sees != "rows" or (spec and spec.args["kind"] == "ROWS")
    columns = {column_of(node) for node in (*partition, *(by for by, _ in order))}
    if by_row and (unique is None or not unique <= columns):
        lacking = f"ORDER BY .., {', '.join(sorted(unique))}" if unique else "read {rows}, or what is grouped"
        raise Refused(f"{function.name} over rows whose order is not total", lacking)
    return Window(partition, order, _frame(spec, order) if spec else "")


def _partition(scope: Scope, tree: exp.Expression) -> Node:
    node = scope.typed(tree)
    if node.kind in ("DOUBLE", "ARRAY<STRING>"):
        raise Refused(f"PARTITION BY {node.kind}", "a partition is a BIGINT, STRING, BOOLEAN, TIMESTAMP or DATE")
    return node


def _order(scope: Scope, tree: exp.Expression) -> tuple[Node, str]:
    """Without NULLS FIRST or LAST as in Spark: NULL is the least, and sqlglot has said so."""
    refuse_unread(tree, "this desc nulls_first")
    nulls = "NULLS FIRST" if tree.args.get("nulls_first") else "NULLS LAST"
    return comparable(scope.typed(tree.this), "the order"), f"{'DESC' if tree.args.get('desc') else 'ASC'} {nulls}"


def _frame(spec: exp.Expression, order: Sequence[tuple[Node, str]]) -> str:
    refuse_unread(spec, "kind start start_side end end_side")
    kind = spec.args["kind"]
    most = {"ROWS": _MOST_ROWS, "RANGE": _LONGEST}.get(kind)
    if most is None:
        raise Refused(f"a frame of {kind}", "ROWS or RANGE")
    bounds = [_bound(spec.args.get(end), spec.args.get(f"{end}_side"), most) for end in ("start", "end")]
    if bounds[0][0] > bounds[1][0] or bounds[0][0] == inf or bounds[1][0] == -inf or not order:
        raise Refused("a frame that ends before it begins, or has no order", "BETWEEN .. PRECEDING AND CURRENT ROW")
    is_by_time = [(column_of(by), direction[:3]) for by, direction in order] == [(TIME, "ASC")]
    if kind == "RANGE" and any(0 < abs(place) < inf for place, _ in bounds) and not is_by_time:
        raise Refused("RANGE over another distance than time", f"ORDER BY {TIME} alone, upwards")
    return f"{kind} BETWEEN {bounds[0][1]} AND {bounds[1][1]}"


def _bound(bound: Any, side: str | None, most: int) -> tuple[float, str]:
    """Where a frame begins or ends, relative to the row, and its text."""
    sign = -1 if side == "PRECEDING" else 1
    if bound is None or bound == "CURRENT ROW":
        return 0, "CURRENT ROW"
    if bound == "UNBOUNDED":
        return sign * inf, f"UNBOUNDED {side}"
    distance = literals.whole(bound, "the bound of a frame", 0, most)
    return sign * distance, f"{distance} {side}" if distance else "CURRENT ROW"
