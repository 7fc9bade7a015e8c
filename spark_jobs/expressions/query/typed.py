"""The typed query between the parser and the renderer, and the positive list of functions that it may call.

A Select reads `{rows}` or a part of WITH. The values of aggregates and windows are columns of their own to the
expressions around them; their names begin with an underscore, as no author's may.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.tree import Node

ROWS, KEY, TIME = "{rows}", "key", "ts"
# What makes a row the row it is. These columns keep their names, and no other takes one: so the name tells.
OWN = (KEY, TIME, "kind", "tie")


@dataclass(frozen=True)
class Function:
    """takes: which kind of argument. gives: which kind of value, None for that of the argument.

    In a template `{0}` is the argument, `{over}` the window or nothing.
    sees: the rows of the frame; their order as well, which must be total; or, in total order, the whole partition.
    """

    name: str
    spark: str
    duckdb: str
    takes: Literal["any", "ordered", "BIGINT", "nothing"]
    gives: Kind | None
    sees: Literal["rows", "order", "partition"] = "rows"


def _both(template: str) -> tuple[str, str]:
    return template, template


AGGREGATES: Mapping[type[exp.Expression], Function] = {
    exp.Count: Function("count", *_both("count({0}){over}"), "any", "BIGINT"),
    exp.Min: Function("min", *_both("min({0}){over}"), "ordered", None),
    exp.Max: Function("max", *_both("max({0}){over}"), "ordered", None),
    # Exact, and NULL where it is no BIGINT, however its addends come; an engine that adds BIGINTs up fails on a sum
    # that passes the limit and returns.
    exp.Sum: Function(
        "sum",
        "try_cast(sum(CAST({0} AS DECIMAL(38, 0))){over} AS BIGINT)",
        "TRY_CAST(sum({0}){over} AS BIGINT)",
        "BIGINT",
        "BIGINT",
    ),
}
_NUMBER = "row_number(){over}"
FUNCTIONS: Mapping[type[exp.Expression], Function] = {
    **AGGREGATES,
    exp.RowNumber: Function("row_number", f"CAST({_NUMBER} AS BIGINT)", _NUMBER, "nothing", "BIGINT", "partition"),
    exp.Lag: Function("lag", *_both("lag({0}, {distance}){over}"), "any", None, "partition"),
    exp.Lead: Function("lead", *_both("lead({0}, {distance}){over}"), "any", None, "partition"),
    exp.FirstValue: Function("first_value", *_both("first_value({0}){over}"), "any", None, "order"),
    exp.LastValue: Function("last_value", *_both("last_value({0}){over}"), "any", None, "order"),
}


@dataclass(frozen=True)
class Relation:
    """A source's columns, and those of them in which no two rows are alike; None where there are none such."""

    columns: Mapping[str, Kind]
    unique: frozenset[str] | None


@dataclass(frozen=True)
class Window:
    """`order`: by what, and in which direction. Directions and `frame` (empty: the default) are one text for both."""

    partition: tuple[Node, ...]
    order: tuple[tuple[Node, str], ...]
    frame: str


@dataclass(frozen=True)
class Call:
    """An aggregate, or a function over a window; `arg` is None for count(*) and row_number()."""

    function: Function
    arg: Node | None
    distance: int = 1
    window: Window | None = None

    @property
    def kind(self) -> Kind:
        kind = self.function.gives or (self.arg.kind if self.arg else "NULL")
        if kind == "NULL":
            raise Refused(f"{self.function.name} of NULL", "give it a kind: CAST(NULL AS BIGINT)")
        return kind


@dataclass(frozen=True)
class Select:
    """`group` is None without GROUP BY; `having`, `windows` and `items` may name the columns made before them."""

    source: str
    where: Node | None
    group: tuple[str, ...] | None
    aggregates: Mapping[str, Call]
    having: Node | None
    windows: Mapping[str, Call]
    items: Mapping[str, Node]


# Branches of UNION ALL.
Union = tuple[Select, ...]
