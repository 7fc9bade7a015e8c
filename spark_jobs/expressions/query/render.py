"""SQL of a typed query: a SELECT is up to three, one within the other, so that each value is computed once.

rows [WHERE] -> [groups with aggregates, HAVING] -> [functions over windows] -> columns
"""

from collections.abc import Mapping

from spark_jobs.expressions.dialect import Dialect, listed, quote, rendered
from spark_jobs.expressions.query.typed import ROWS, Call, Select, Union
from spark_jobs.expressions.render import render as render_value
from spark_jobs.expressions.tree import Node

# Stands for the relation of rows; no text of ours can hold it.
RELATION = "\0"


def render(parts: Mapping[str, Union], branches: Union, dialect: Dialect) -> str:
    """One SELECT; RELATION stands where it reads {rows}."""
    named = ", ".join(f"{_part(name, dialect)} AS ({_union(part, dialect)})" for name, part in parts.items())
    return f"WITH {named} {_union(branches, dialect)}" if named else _union(branches, dialect)


def _part(name: str, d: Dialect) -> str:
    """A name that the relation, which is text of others, does not use."""
    return quote(f"_{name}", d)


def _union(branches: Union, d: Dialect) -> str:
    return " UNION ALL ".join(_select(select, d) for select in branches)


def _select(select: Select, d: Dialect) -> str:
    source = f"{RELATION if select.source == ROWS else _part(select.source, d)}{_filter(select.where, d)}"
    if select.group is not None:
        group = listed(select.group, d)
        made = "".join(f", {_named(name, _call(call, d), d)}" for name, call in select.aggregates.items())
        source = f"(SELECT {group}{made} FROM {source} GROUP BY {group}){_filter(select.having, d)}"
    if select.windows:
        made = "".join(f", {_named(name, _call(call, d), d)}" for name, call in select.windows.items())
        source = f"(SELECT *{made} FROM {source})"
    return f"SELECT {', '.join(_named(name, _value(node, d), d) for name, node in select.items.items())} FROM {source}"


def _value(node: Node, d: Dialect) -> str:
    """NULL where it fails: there is no one to reject a result."""
    return render_value(node, d).total()


def _named(name: str, value: str, d: Dialect) -> str:
    return f"{value} AS {quote(name, d)}"


def _filter(condition: Node | None, d: Dialect) -> str:
    return f" WHERE {_value(condition, d)}" if condition else ""


def _call(call: Call, d: Dialect) -> str:
    arg = _value(call.arg, d) if call.arg else "*"
    return rendered(call.function, d).format(arg, distance=call.distance, over=_over(call, d))


def _over(call: Call, d: Dialect) -> str:
    if call.window is None:
        return ""
    clauses = [f"PARTITION BY {', '.join(_value(node, d) for node in call.window.partition)}"]
    order = ", ".join(f"{_value(by, d)} {direction}" for by, direction in call.window.order)
    clauses += [f"ORDER BY {order}"] if order else []
    clauses += [call.window.frame] if call.window.frame else []
    return f" OVER ({' '.join(clauses)})"
