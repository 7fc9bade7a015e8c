"""The positive list of aggregates and window functions: sqlglot's class -> the function, with a template per engine.

In a template `{0}` is the argument, `{over}` the window or nothing. A sum is exact, and NULL where it is no BIGINT,
however its addends come; an engine that adds BIGINTs up fails on a sum that passes the limit and returns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sqlglot import exp

from spark_jobs.expressions.kinds import Kind


@dataclass(frozen=True)
class Function:
    """takes: which kind of argument. gives: which kind of value, None for that of the argument.

    is_ordered: the value depends on the order of rows, so it must be total. is_framed: a window may have a frame.
    """

    name: str
    spark: str
    duckdb: str
    takes: Literal["any", "ordered", "BIGINT", "nothing"]
    gives: Kind | None
    is_ordered: bool = False
    is_framed: bool = True


def _alike(
    name: str,
    takes: Literal["any", "ordered"] = "any",
    gives: Kind | None = None,
    args: str = "{0}",
    *,
    is_ordered: bool = False,
    is_framed: bool = True,
) -> Function:
    """A function that both engines spell alike."""
    template = f"{name}({args}){{over}}"
    return Function(name, template, template, takes, gives, is_ordered, is_framed)


AGGREGATES: Mapping[type[exp.Expression], Function] = {
    exp.Count: _alike("count", gives="BIGINT"),
    exp.Min: _alike("min", takes="ordered"),
    exp.Max: _alike("max", takes="ordered"),
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
    exp.RowNumber: Function("row_number", f"CAST({_NUMBER} AS BIGINT)", _NUMBER, "nothing", "BIGINT", True, False),
    exp.Lag: _alike("lag", args="{0}, {distance}", is_ordered=True, is_framed=False),
    exp.Lead: _alike("lead", args="{0}, {distance}", is_ordered=True, is_framed=False),
    exp.FirstValue: _alike("first_value", is_ordered=True),
    exp.LastValue: _alike("last_value", is_ordered=True),
}
