"""What clients of Flight SQL ask of a database: what it is, its schemas, tables and keys, as the tables they expect.

a message, and what workers say of schemas and tables -> Arrow rows of the protocol's shape.
"""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

Listed = list[dict[str, Any]]
TEXT, KEPT = pa.string(), False
CATALOGS = pa.schema([pa.field("catalog_name", TEXT, KEPT)])
DB_SCHEMAS = pa.schema([pa.field("catalog_name", TEXT), pa.field("db_schema_name", TEXT, KEPT)])
TABLE_TYPES = pa.schema([pa.field("table_type", TEXT, KEPT)])
TABLES = pa.schema(
    [*DB_SCHEMAS.set(1, pa.field("db_schema_name", TEXT)), pa.field("table_name", TEXT, KEPT),
     pa.field("table_type", TEXT, KEPT)]
)  # fmt: skip
TABLES_WITH_COLUMNS = TABLES.append(pa.field("table_schema", pa.binary(), KEPT))
PRIMARY_KEYS = pa.schema(
    [*TABLES.remove(3), pa.field("column_name", TEXT, KEPT), pa.field("key_name", TEXT),
     pa.field("key_sequence", pa.int32(), KEPT)]
)  # fmt: skip
FOREIGN_KEYS = pa.schema(
    [
        *(pa.field(f"{side}_{name}", TEXT, name in ("catalog_name", "db_schema_name"))
          for side in ("pk", "fk") for name in ("catalog_name", "db_schema_name", "table_name", "column_name")),
        pa.field("key_sequence", pa.int32(), KEPT),
        pa.field("fk_key_name", TEXT), pa.field("pk_key_name", TEXT),
        pa.field("update_rule", pa.uint8(), KEPT), pa.field("delete_rule", pa.uint8(), KEPT),
    ]
)  # fmt: skip
VALUES = (
    ("string_value", pa.string()), ("bool_value", pa.bool_()), ("bigint_value", pa.int64()),
    ("int32_bitmask", pa.int32()), ("string_list", pa.list_(pa.string())),
    ("int32_to_int32_list_map", pa.map_(pa.int32(), pa.list_(pa.int32()))),
)  # fmt: skip
UNION = pa.dense_union([pa.field(name, kind) for name, kind in VALUES])
SQL_INFO = pa.schema([pa.field("info_name", pa.uint32(), KEPT), pa.field("value", UNION, KEPT)])
FACTS: Mapping[int, str | bool] = {
    0: "Tidemark", 1: "1", 2: pa.__version__, 3: True,  # name, version, of Arrow, whether it only reads
    4: True, 5: False, 8: False,  # whether it takes SQL, Substrait, transactions
    504: "`",  # what names are quoted by
}  # fmt: skip
"""SqlInfo of the protocol: number -> value."""


def sql_info(asked: Iterable[int]) -> pa.Table:
    """The facts that are asked for; all where none is."""
    facts = {number: FACTS[number] for number in asked if number in FACTS} if [*asked] else FACTS
    kinds = [1 if isinstance(value, bool) else 0 for value in facts.values()]
    texts = [value for value in facts.values() if not isinstance(value, bool)]
    flags = [value for value in facts.values() if isinstance(value, bool)]
    offsets = [kinds[:place].count(kind) for place, kind in enumerate(kinds)]
    children = [pa.array(texts, pa.string()), pa.array(flags, pa.bool_())]
    children += [pa.array([], kind) for _, kind in VALUES[2:]]
    union = pa.UnionArray.from_dense(
        pa.array(kinds, pa.int8()), pa.array(offsets, pa.int32()), children, [name for name, _ in VALUES]
    )
    return pa.Table.from_arrays([pa.array(facts, pa.uint32()), union], schema=SQL_INFO)


def db_schemas(names: Iterable[str], pattern: str | None) -> pa.Table:
    rows = [{"db_schema_name": name} for name in sorted(names) if _is_like(name, pattern)]
    return pa.Table.from_pylist(rows, DB_SCHEMAS)


def tables(schemas: Iterable[str], of: Callable[[str], Listed], message: Any) -> pa.Table:
    """of: a schema -> its tables."""
    shape = TABLES_WITH_COLUMNS if message.include_schema else TABLES
    rows = [
        {"db_schema_name": schema, "table_name": one["name"], "table_type": one["type"]}
        | ({"table_schema": base64.b64decode(one["columns"])} if message.include_schema else {})
        for schema in sorted(schemas)
        if _is_like(schema, given(message, "db_schema_filter_pattern"))
        for one in of(schema)
        if _is_like(one["name"], given(message, "table_name_filter_pattern"))
        and (not message.table_types or one["type"] in message.table_types)
    ]
    return pa.Table.from_pylist(rows, shape)


def primary_keys(listed: Listed, schema: str, table: str) -> pa.Table:
    keys: list[str] = next((one["keys"] for one in listed if one["name"] == table), [])
    rows = [
        {"db_schema_name": schema, "table_name": table, "column_name": key, "key_sequence": number}
        for number, key in enumerate(keys, start=1)
    ]
    return pa.Table.from_pylist(rows, PRIMARY_KEYS)


def given(message: Any, field: str) -> str | None:
    """The field's text; None where it was not sent, which is not the same as an empty one."""
    return getattr(message, field) if message.HasField(field) else None


def _is_like(name: str, pattern: str | None) -> bool:
    """As LIKE has it: % is any text, _ any character."""
    if pattern is None:
        return True
    parts = ("." if c == "_" else ".*" if c == "%" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), name) is not None
