"""The pass: decoded records to the rows of speed.partials, for all views at once.

facts and rejects -> drop duplicates -> partials -> rows of speed.partials, not yet written. Used for a micro-batch and
for catch-up alike: rows carry their own lsn. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs import contracts, tables
from spark_jobs.decode import Decoded
from spark_jobs.dedupe import first_of_each, without
from spark_jobs.partials import compute
from spark_jobs.speed import suspects as suspected
from spark_jobs.view import View

FIXED = pa.schema([("view", pa.string()), ("lsn", pa.int64()), ("control", tables.CONTROL)])
WORKING = pa.schema([("positions", pa.binary())])
"""Travels with an `__ids__` row to the driver, is never stored."""
FAILURE_ROW = "__failed__"
"""Transient: a view whose pass failed in this task; the driver sets it aside and writes nothing of it."""
STORED_ONCE = (tables.REJECT_ROW, tables.DUPLICATE_ROW, tables.IDS_ROW)
"""What a pass finds out besides partials; stored by the first one over an lsn."""


@dataclass(frozen=True)
class Settled:
    """What is already known of the duplicates among the records.

    `losers`: coordinates found earlier, written as `__dup__` rows; nothing else is a duplicate then (catch-up).
    `suspects`: identities that occur in several tasks or in the window, each with the one record that counts.
    """

    losers: pa.Table | None = None
    suspects: pa.Table | None = None


NOT_SETTLED = Settled()


def partials_schema(views: Sequence[View]) -> pa.Schema:
    """The columns of speed.partials with these views, but for `span`, which is where a file lies."""
    return pa.schema([*FIXED, *[pa.field(view.column, pa.struct(list(view.partial_schema))) for view in views]])


def rows_of(decoded: Decoded, views: list[View], settled: Settled, schema: pa.Schema) -> pa.Table:
    """The rows of one task, in `schema`: what the pass is, without Spark."""
    return _laid_out(_rows(decoded, views, settled), schema)


def stored(rows: pa.Table, settled: Settled) -> pa.Table:
    """What of a pass is stored, with the columns of speed.partials."""
    left_out = [FAILURE_ROW] if settled.losers is None else [FAILURE_ROW, *STORED_ONCE]
    return rows.filter(pc.invert(pc.is_in(rows["view"], pa.array(left_out)))).drop_columns(WORKING.names)


def found_out(rows: pa.Table) -> pa.Table:
    """What of a pass the driver must know: its control rows and failures."""
    return rows.filter(pc.is_in(rows["view"], pa.array([FAILURE_ROW, *STORED_ONCE])))


def working_schema(views: Sequence[View]) -> pa.Schema:
    """The columns of a pass: those of speed.partials, then the working ones."""
    return pa.schema([*partials_schema(views), *WORKING])


def _rows(decoded: Decoded, views: list[View], settled: Settled) -> Iterator[pa.Table]:
    facts, ids = {}, []
    for event_type, found in decoded.facts.items():
        facts[event_type], duplicates = _unique(found, settled)
        ids.append(suspected.ids_of(facts[event_type]))
        yield _control_rows(tables.DUPLICATE_ROW, duplicates)
    yield _control_rows(tables.REJECT_ROW, decoded.rejects)
    if ids:
        yield from suspected.ids_rows(pa.concat_tables(ids), contracts.load().topics)
    passed = compute(facts, views)
    yield _control_rows(tables.REJECT_ROW, passed.rejects)
    for column, error in passed.failed.items():
        yield _failure(column, error)
    for column, table in passed.partials.items():
        if table.num_rows:
            yield _struct_rows(column, table)


def _unique(facts: pa.Table, settled: Settled) -> tuple[pa.Table, pa.Table]:
    if settled.losers is not None:
        kept = without(facts, settled.losers)
        return kept, facts.slice(0, 0)
    if settled.suspects is not None:
        facts, lost = suspected.split(facts, settled.suspects)
        winners, repeated = first_of_each(facts)
        return winners, pa.concat_tables([lost, repeated])
    return first_of_each(facts)


CONTROL_FIELDS = ("topic", "partition", "offset", "event_type", "reason", "field", "view")


def _control_rows(kind: str, found: pa.Table) -> pa.Table:
    """One control row per record of `found`, with those of its columns that `control` has."""
    size = found.num_rows
    columns = [
        found[field.name].combine_chunks().cast(field.type)
        if field.name in CONTROL_FIELDS and field.name in found.column_names
        else pa.nulls(size, field.type)
        for field in tables.CONTROL
    ]
    control = pa.StructArray.from_arrays(columns, fields=list(tables.CONTROL))
    return pa.table({"view": pa.array([kind] * size, pa.string()), "lsn": found["lsn"], "control": control})


def _failure(column: str, error: str) -> pa.Table:
    control = pa.array([{"view": column, "reason": error}], tables.CONTROL)
    return pa.table({"view": [FAILURE_ROW], "lsn": pa.nulls(1, pa.int64()), "control": control})


def _struct_rows(column: str, table: pa.Table) -> pa.Table:
    fields = [field for field in table.schema if field.name != "lsn"]
    struct = pa.StructArray.from_arrays([table[f.name].combine_chunks() for f in fields], fields=fields)
    return pa.table({"view": pa.array([column] * table.num_rows, pa.string()), "lsn": table["lsn"], column: struct})


def _laid_out(rows: Iterator[pa.Table], schema: pa.Schema) -> pa.Table:
    """All kinds of rows in the one wide schema, absent columns null."""
    parts = [table for table in rows if table.num_rows]
    together = pa.concat_tables(parts, promote_options="default") if parts else schema.empty_table()
    size = together.num_rows
    columns = [
        together[field.name].combine_chunks().cast(field.type)
        if field.name in together.column_names
        else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
