"""What the author of a refused query is told: which of its texts it is, and what to write instead."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from textwrap import shorten

from sqlglot import exp

from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.grammar import scope
from spark_jobs.expressions.query.typed import FUNCTIONS, ROWS

CLAUSES: Mapping[str, str] = {
    "joins": "rows meet by windows: see the shapes in docs/sequences.md",
    "distinct": "GROUP BY the columns",
    "order": "results have no order; order inside windows",
    **dict.fromkeys(("limit", "offset"), "results have no order; number rows by row_number() and keep some by WHERE"),
    "qualify": "compute it in a part of WITH and keep rows by WHERE",
    "with_": "write all parts in one WITH, before the first SELECT",
}
LISTED = f"there are {', '.join(function.name for function in FUNCTIONS.values())}"
_PLACE = "write OVER (PARTITION BY key ..) or GROUP BY key; for WHERE and for each other make it a column of WITH"
HINTS: dict[type[exp.Expression], str] = {
    exp.Query: "read {rows} or a part of WITH in FROM; rows meet by windows",
    exp.Exists: "rows meet by windows: count(CASE WHEN .. THEN 1 END) OVER (..) > 0",
    exp.Star: "name the columns",
    exp.Distinct: "number repetitions by row_number() in a part of WITH, and count the first ones",
    **dict.fromkeys((exp.Filter, exp.CountIf), "write count(CASE WHEN .. THEN 1 END)"),
    exp.LogicalOr: "write max(condition)",
    exp.LogicalAnd: "write min(condition)",
    **dict.fromkeys((exp.ArgMax, exp.ArgMin), "number rows by row_number() in a part of WITH, and keep the first"),
    **dict.fromkeys((exp.Window, *FUNCTIONS), _PLACE),
    exp.AggFunc: LISTED,
    **dict.fromkeys((exp.CurrentTimestamp, exp.CurrentDate, exp.Rand), "results follow from the rows alone"),
}
HINTS |= {tree: hint for tree, hint in scope.HINTS.items() if tree not in HINTS}


def shortened(text: str) -> str:
    """What is left of a text in a message."""
    return shorten(text.replace(f"`{ROWS}`", ROWS), 160, placeholder=" ..")


@contextmanager
def blamed(tree: exp.Expression) -> Iterator[None]:
    """What is refused inside is refused of this text."""
    try:
        yield
    except Refused as refused:
        refused.text = refused.text or shortened(tree.sql("spark"))
        raise
