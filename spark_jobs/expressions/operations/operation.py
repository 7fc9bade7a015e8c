"""One operation of the positive list, and how a table of them is written.

signature of an operation -> its SQL, one text for both engines or one for each -> Table
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from spark_jobs.expressions.kinds import KINDS, Kind

# A parameter `T` is any kind with an order, the same for every `T` of the operation.
Parameter = Kind | Literal["T"]
Nulls = Literal["strict", "own", "never"]


@dataclass(frozen=True)
class Operation:
    """`{0}`, `{1}`.. in a template are arguments, `{rest}` all from the second on, joined by commas.

    Templates are total: they give NULL where the operation fails, and no engine setting makes them raise.
    `nulls`: "strict" gives NULL exactly where an argument is NULL or the operation fails; "own" has a rule of its own;
    "never" gives no NULL. `fails`: a value can be NULL because the operation failed.
    """

    parameters: tuple[Parameter, ...]
    result: Parameter
    spark: str
    duckdb: str
    fails: bool = False
    nulls: Nulls = "strict"
    variadic: bool = False


Table = dict[str, tuple[Operation, ...]]
_SIGNATURE = re.compile(r"(\w+)\((.*?)(, \.\.)?\) -> (\S+)( or fails)?(?:, nulls (own|never))?")


def table(templates: Mapping[str, str | tuple[str, str]]) -> Table:
    """`name(KIND, ..) -> KIND[ or fails][, nulls own|never]` for each overload; `..`: the last kind again and again."""
    listed: Table = {}
    for signature, sql in templates.items():
        read = _SIGNATURE.fullmatch(signature)
        assert read, signature
        name, parameters, again, result, fails, nulls = read.groups()
        kinds = tuple(cast(Parameter, kind) for kind in parameters.split(", "))
        assert {*kinds, result} <= {*KINDS, "T"}, signature
        spark, duckdb = (sql, sql) if isinstance(sql, str) else sql
        operation = Operation(
            kinds, cast(Parameter, result), spark, duckdb, bool(fails), cast(Nulls, nulls or "strict"), bool(again)
        )
        listed[name] = (*listed.get(name, ()), operation)
    return listed
