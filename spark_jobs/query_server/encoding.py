"""Rows as bytes for clients: JSON, CSV, or an Arrow stream.

Arrow table + metadata -> body. Instants are ISO 8601 in UTC, decimals keep all their digits, lists are lists.
"""

import csv
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from typing import Any, Literal

import pyarrow as pa

from spark_jobs.query_server.refusal import Refusal
from spark_jobs.serving.formatting import plain, repeated

Format = Literal["json", "lists", "csv", "arrow"]
CONTENT: Mapping[Format, str] = {
    "json": "application/json",
    "lists": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
TYPES = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.date32(): "DATE",
}
"""Arrow's types by Spark's names; others are below."""


def encoded(rows: pa.Table, form: Format, meta: Mapping[str, Any]) -> bytes:
    match form:
        case "json":
            return _json(rows, meta, _objects(rows.column_names))
        case "lists":
            return _json(rows, meta, _list)
        case "csv":
            return _csv(rows)
        case "arrow":
            return _arrow(rows, meta)


def columns(schema: pa.Schema) -> list[dict[str, str]]:
    """Name and type of each column; a type as Spark calls it."""
    return [{"name": field.name, "type": type_name(field.type)} for field in schema]


def type_name(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if pa.types.is_list(kind):
        return f"ARRAY<{type_name(kind.value_type)}>"
    return TYPES.get(kind, str(kind).upper())


def _json(rows: pa.Table, meta: Mapping[str, Any], row_of: Callable[[Iterable[str]], str]) -> bytes:
    """One object: `meta`, `columns`, and `rows`, each an object or a list; a decimal has all its digits."""
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    lines = (row_of(map(_literal, row)) for row in values)
    head = f'{{"meta": {json.dumps(meta)},\n "columns": {json.dumps(columns(rows.schema))},\n "rows": [\n'
    return (head + ",\n".join(lines) + "\n]}\n").encode()


def _objects(names: Sequence[str]) -> Callable[[Iterable[str]], str]:
    """How the values of a row become a JSON object. Raises Refusal where two columns have one name."""
    if reason := repeated(names):
        raise Refusal("refused", reason)
    quoted = [json.dumps(name) for name in names]
    return lambda values: "{" + ", ".join(map("{}: {}".format, quoted, values)) + "}"


def _list(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"


def _literal(value: Any) -> str:
    match value:
        case None | bool() | int() | str():
            return json.dumps(value, ensure_ascii=False)
        case float():
            return json.dumps(value if math.isfinite(value) else plain(value))
        case Decimal():
            return plain(value)
        case list():
            return _list(map(_literal, value))
        case dict():
            return "{" + ", ".join(f"{json.dumps(name)}: {_literal(one)}" for name, one in value.items()) + "}"
    return json.dumps(plain(value), ensure_ascii=False)


def _csv(rows: pa.Table) -> bytes:
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(rows.column_names)
    values = zip(*(column.to_pylist() for column in rows.columns), strict=True)
    writer.writerows([None if value is None else _text(value) for value in row] for row in values)
    return out.getvalue().encode()


def _text(value: Any) -> str:
    return _literal(value) if isinstance(value, list | dict) else plain(value)


def _arrow(rows: pa.Table, meta: Mapping[str, Any]) -> bytes:
    """The metadata is the schema's, by the name `tidemark`."""
    out = pa.BufferOutputStream()
    rows = rows.replace_schema_metadata({b"tidemark": json.dumps(meta).encode()})
    with pa.ipc.new_stream(out, rows.schema) as stream:
        stream.write_table(rows)
    return bytes(out.getvalue())
