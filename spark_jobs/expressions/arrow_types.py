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
_KINDS = {arrow: kind for kind, arrow in _ARROW.items()}


def arrow_of(kind: Kind) -> pa.DataType:
    """The Arrow type of a kind's values."""
    return _ARROW[kind]


def kind_of(arrow: pa.DataType) -> Kind:
    """The kind whose values an Arrow column of this type holds; ValueError where there is none."""
    if arrow not in _KINDS:
        raise ValueError(f"Arrow type {arrow} has no kind; expressions know {', '.join(KINDS)}")
    return _KINDS[arrow]
