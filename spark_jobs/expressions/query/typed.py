"""The typed query between the parser and the renderer.

A Select reads `{rows}` or a part of WITH. The values of aggregates and windows are columns of their own to the
expressions around them; their names begin with an underscore, as no author's may.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.query.functions import Function
from spark_jobs.expressions.tree import Node

ROWS, KEY, TIME = "{rows}", "key", "ts"
# What makes a row the row it is. These columns keep their names, and no other takes one: so the name tells.
OWN = (KEY, TIME, "kind", "tie")


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
    group: tuple[Node, ...] | None
    aggregates: Mapping[str, Call]
    having: Node | None
    windows: Mapping[str, Call]
    items: Mapping[str, Node]


# Branches of UNION ALL.
Union = tuple[Select, ...]
