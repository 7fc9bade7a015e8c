"""How a node of sqlglot's tree becomes a typed node: by the rule of its class, or not at all.

A rule names the arguments of the class that it reads; a further one that is set is refused.
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind
from spark_jobs.expressions.tree import Node
from spark_jobs.expressions.typing_rules import call

BINARY = "this expression"
Rule = Callable[["Scope", exp.Expression], Node]
# Marks that sqlglot's Spark parser sets by itself, which change nothing here.
_MARKS = {"typed", "safe", "ignore_nulls", "big_int", "coalesce", "_type", "nested"}
HINTS: dict[type[exp.Expression], str] = {
    exp.RegexpLike: "write LIKE, contains, startswith or endswith",
    exp.ILike: "write lower(x) LIKE ..",
    exp.Bracket: "write get(x, 0): it counts from 0 and gives NULL past the end",
    exp.AggFunc: "a measure aggregates, an expression does not",
    exp.Window: "a sequence view orders rows, an expression sees one",
    exp.Subquery: "an expression sees one row; a lookup or a sequence view joins",
    exp.CurrentTimestamp: "an expression sees the event alone; `now` exists only at serving",
    exp.CurrentDate: "an expression sees the event alone; `now` exists only at serving",
    exp.Pow: "write x * x; the engines' last bits differ",
    exp.Interval: "an interval stands only behind TIMESTAMP + or -",
    exp.DateTrunc: "write to_date(date_trunc('MONTH', occurred_at))",
    exp.HexString: "write the number in decimal",
}
_DOCS = "docs/expressions.md lists what is"


@dataclass(frozen=True)
class Scope:
    """The columns that an expression may name, the rules that it may use, and what to do without the others."""

    columns: Mapping[str, Kind]
    rules: Mapping[type[exp.Expression], tuple[str, Rule]]
    hints: Mapping[type[exp.Expression], str] = field(default_factory=lambda: HINTS)

    def typed(self, tree: exp.Expression) -> Node:
        """The typed node of one sqlglot node."""
        if type(tree) not in self.rules:
            name = tree.name if isinstance(tree, exp.Anonymous) else type(tree).__name__
            hint = next((hint for kind, hint in self.hints.items() if isinstance(tree, kind)), _DOCS)
            raise Refused(f"`{tree.sql('spark')}`: {name} is not in the subset", hint)
        reads, build = self.rules[type(tree)]
        refuse_unread(tree, reads)
        return build(self, tree)

    def each(self, trees: list[exp.Expression]) -> list[Node]:
        return [self.typed(tree) for tree in trees]

    def column(self, tree: exp.Expression) -> Node:
        """A column by its exact name: both engines would also take another case."""
        name = tree.name
        if name in self.columns:
            return Node("column", self.columns[name], (), name)
        near = difflib.get_close_matches(name, self.columns, 3, 0.5)
        known = ", ".join(near or sorted(self.columns)) or "no columns"
        raise Refused(f"unknown column {name}", f"did you mean {known}?" if near else f"there are {known}")


def refuse_unread(tree: exp.Expression, reads: str) -> None:
    """Refuse a node with an argument that its rule does not read."""
    if extra := [k for k, v in tree.args.items() if v and k not in reads.split() and k not in _MARKS]:
        raise Refused(f"`{tree.sql('spark')}`: the argument {', '.join(extra)} is not in the subset", _DOCS)


def calls(name: str, reads: str = "this") -> tuple[str, Rule]:
    """The rule that makes the operation `name` of the class's arguments, in this order."""

    def build(scope: Scope, tree: exp.Expression) -> Node:
        present = [tree.args[key] for key in reads.split() if tree.args.get(key) is not None]
        return call(name, *(scope.typed(arg) for arg in present))

    return reads, build
