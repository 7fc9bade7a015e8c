"""Create Delta tables without a JVM; `publication.names.ensure_named` gives them their names in the catalog.

Arrow schema -> delta-rs -> an empty version 0, or new columns.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from deltalake import DeltaTable, Schema

from spark_jobs.storage import tables

COMMITTED_OFTEN = {
    "delta.checkpointInterval": "10",
    "delta.logRetentionDuration": "interval 10 minutes",
    "delta.deletedFileRetentionDuration": "interval 2 hours",
}
"""Properties of a table with a commit per micro-batch: a reader of a new version reads the commits since the last
checkpoint and lists all that are kept, so both are few. Nobody reads an old version of it. Whoever commits the tenth
version writes the checkpoint, and removes commits that are older. A checkpoint names the files that were removed in the
last two hours; by default it would be those of a week."""
GROWS_FOR_EVER = {**COMMITTED_OFTEN, "delta.checkpointInterval": "100"}
"""The same of a table whose files are many in time: a checkpoint names them all, so there is one less often."""
READ_AT_VERSIONS = {"delta.checkpointInterval": "10"}
"""Properties of a table that is read at one of its versions: that reads the commits since the checkpoint before it, 25
ms for the hundred that Delta leaves between two."""


def looked_up_by(*columns: str) -> dict[str, str]:
    """The property that keeps Delta's statistics to these columns; a reader parses all there are."""
    return {"delta.dataSkippingStatsColumns": ",".join(columns)}


def create(
    table: str,
    schema: pa.Schema,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str | None] = MappingProxyType({}),
) -> None:
    """Create the table where it does not exist; where it does, add the columns of `schema` that it lacks."""
    at = tables.path(table)
    made = DeltaTable.create(at, schema, mode="ignore", partition_by=list(partition_by), configuration=dict(properties))
    known = {field.name for field in made.schema().fields}
    if added := [field for field in Schema.from_arrow(schema).fields if field.name not in known]:
        made.alter.add_columns(added)


def keep_properties(table: str, properties: Mapping[str, str]) -> None:
    """Give a table that an older version of the program has made the properties that it gets today."""
    there = DeltaTable(tables.path(table))
    has = there.metadata().configuration
    if changed := {name: value for name, value in properties.items() if has.get(name) != value}:
        there.alter.set_table_properties(changed)
