"""The types that expressions know, and their names in DuckDB.

A kind's name is Spark's. `arrow_types` has the Arrow types.
"""

from typing import Literal, get_args

Kind = Literal["BIGINT", "DOUBLE", "STRING", "BOOLEAN", "TIMESTAMP", "DATE", "ARRAY<STRING>"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# As `DESCRIBE` prints them; in Spark a type has the kind's own name.
DUCKDB_TYPES: dict[Kind, str] = {
    "BIGINT": "BIGINT",
    "DOUBLE": "DOUBLE",
    "STRING": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "TIMESTAMP": "TIMESTAMP WITH TIME ZONE",
    "DATE": "DATE",
    "ARRAY<STRING>": "VARCHAR[]",
}
