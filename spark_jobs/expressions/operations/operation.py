"""One operation of the positive list: argument kinds, result, and its SQL in both engines."""

from dataclasses import dataclass
from typing import Literal

from spark_jobs.expressions.kinds import Kind

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


def alike(parameters: tuple[Parameter, ...], result: Parameter, template: str, nulls: Nulls = "strict") -> Operation:
    """An operation that is spelled alike in both engines, means the same there and cannot fail."""
    return Operation(parameters, result, template, template, nulls=nulls)


Table = dict[str, tuple[Operation, ...]]
