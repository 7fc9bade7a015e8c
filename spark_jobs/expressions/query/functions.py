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


def _aggregate(name: str, takes: Literal["any", "ordered"], gives: Kind | None) -> Function:
    template = f"{name}({{0}}){{over}}"
    return Function(name, template, template, takes, gives)


def _end(name: str) -> Function:
    template = f"{name}({{0}}){{over}}"
    return Function(name, template, template, "any", None, is_ordered=True)


def _neighbour(name: str) -> Function:
    template = f"{name}({{0}}, {{distance}}){{over}}"
    return Function(name, template, template, "any", None, is_ordered=True, is_framed=False)


AGGREGATES: Mapping[type[exp.Expression], Function] = {
    exp.Count: _aggregate("count", "any", "BIGINT"),
    exp.Min: _aggregate("min", "ordered", None),
    exp.Max: _aggregate("max", "ordered", None),
    exp.Sum: Function(
        "sum",
        "try_cast(sum(CAST({0} AS DECIMAL(38, 0))){over} AS BIGINT)",
        "TRY_CAST(sum({0}){over} AS BIGINT)",
        "BIGINT",
        "BIGINT",
    ),
}
FUNCTIONS: Mapping[type[exp.Expression], Function] = {
    **AGGREGATES,
    exp.RowNumber: Function(
        "row_number",
        "CAST(row_number(){over} AS BIGINT)",
        "row_number(){over}",
        "nothing",
        "BIGINT",
        is_ordered=True,
        is_framed=False,
    ),
    exp.Lag: _neighbour("lag"),
    exp.Lead: _neighbour("lead"),
    exp.FirstValue: _end("first_value"),
    exp.LastValue: _end("last_value"),
}
