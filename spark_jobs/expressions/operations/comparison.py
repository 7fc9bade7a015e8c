"""Comparison and choice. Strings by code point; NaN equals itself and is the greatest DOUBLE; -0.0 equals 0.0."""

from spark_jobs.expressions.operations.operation import Operation, Table, alike

_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}

COMPARISON: Table = {
    **{name: (alike(("T", "T"), "BOOLEAN", f"({{0}} {sign} {{1}})"),) for name, sign in _SIGNS.items()},
    "same": (alike(("T", "T"), "BOOLEAN", "({0} IS NOT DISTINCT FROM {1})", nulls="never"),),
    "is_null": (
        alike(("T",), "BOOLEAN", "({0} IS NULL)", nulls="never"),
        alike(("ARRAY<STRING>",), "BOOLEAN", "({0} IS NULL)", nulls="never"),
    ),
    "in": (Operation(("T", "T"), "BOOLEAN", "({0} IN ({rest}))", "({0} IN ({rest}))", variadic=True),),
    "not": (alike(("BOOLEAN",), "BOOLEAN", "(NOT {0})"),),
    "nullif": (alike(("T", "T"), "T", "nullif({0}, {1})", nulls="own"),),
    "greatest": (alike(("T", "T"), "T", "greatest({0}, {1})", nulls="own"),),
    "least": (alike(("T", "T"), "T", "least({0}, {1})", nulls="own"),),
}
