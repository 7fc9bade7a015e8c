"""The Arrow types of the kinds that expressions know. Arrow type <-> Kind."""

import pyarrow as pa

from spark_jobs.expressions.kinds import KINDS, Kind

_ARROW: dict[Kind, pa.DataType] = {
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "DATE": pa.date32(),
    "ARRAY<STRING>": pa.list_(pa.string()),
}


def arrow_of(kind: Kind) -> pa.DataType:
    """The Arrow type of a kind's values."""
    return _ARROW[kind]


def kind_of(arrow: pa.DataType) -> Kind:
    """The kind whose values an Arrow column of this type holds; ValueError where there is none."""
    for kind, candidate in _ARROW.items():
        if arrow == candidate or (kind == "STRING" and pa.types.is_large_string(arrow)):
            return kind
    raise ValueError(f"Arrow type {arrow} has no kind; expressions know {', '.join(KINDS)}")


def columns_of(schema: pa.Schema) -> dict[str, Kind]:
    """The columns of a table that expressions may use; others (bytes, structs, 32-bit integers) are left out."""
    known = set(_ARROW.values())
    return {field.name: kind_of(field.type) for field in schema if field.type in known}
