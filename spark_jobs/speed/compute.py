"""The pass: raw records to the rows of speed.partials, for all views at once.

records -> mapInArrow(decode -> drop duplicates -> partials) -> rows of speed.partials, not yet written. Used for a
micro-batch and for catch-up alike: rows carry their own lsn.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from spark_jobs import contracts, tables
from spark_jobs.decode import Decoded, decode
from spark_jobs.dedupe import first_of_each, without
from spark_jobs.partials import compute
from spark_jobs.speed import suspects as suspected
from spark_jobs.view import View

ARROW_ROWS = 131_072
"""Records per Arrow batch: large enough that the fixed cost of a pass is small, small enough for a worker's memory."""

FIXED = pa.schema([("view", pa.string()), ("lsn", pa.int64()), ("span", pa.int64()), ("control", tables.CONTROL)])
WORKING = pa.schema([("positions", pa.binary())])
"""Travels with an `__ids__` row to the driver, is never stored."""


@dataclass(frozen=True)
class Settled:
    """What is already known of the duplicates among the records.

    `losers`: coordinates found earlier, written as `__dup__` rows; nothing else is a duplicate then (catch-up).
    `suspects`: identities that occur in several tasks or in the window, each with the one record that counts.
    """

    losers: pa.Table | None = None
    suspects: pa.Table | None = None


def partials_schema(views: Sequence[View]) -> pa.Schema:
    """The columns of speed.partials with these views."""
    return pa.schema([*FIXED, *[pa.field(view.column, pa.struct(list(view.partial_schema))) for view in views]])


def pass_over(records: DataFrame, views: Sequence[View], span: int, settled: Settled = Settled()) -> DataFrame:
    """Rows of speed.partials (and the working column `positions`) for `records` (columns of tables.RECORD)."""
    schema = working_schema(views)
    task = _task(list(views), span, settled, schema)
    columns = records.select([field.name for field in tables.RECORD])
    return columns.mapInArrow(task, from_arrow_schema(schema, prefer_timestamp_ntz=False))


def _task(
    views: list[View], span: int, settled: Settled, schema: pa.Schema
) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        known = contracts.load()
        for batch in batches:
            if batch.num_rows:
                records = pa.Table.from_batches([batch]).cast(tables.RECORD)
                yield from rows_of(decode(records, known), views, span, settled, schema).to_batches()

    return run


def rows_of(decoded: Decoded, views: list[View], span: int, settled: Settled, schema: pa.Schema) -> pa.Table:
    """The rows of one task, in `schema`: what the pass is, without Spark."""
    return _laid_out(_rows(decoded, views, settled), span, schema)


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


FAILURE_ROW = "__failed__"
"""Transient: a view whose pass failed in this task; the driver sets it aside and writes nothing of it."""


def _failure(column: str, error: str) -> pa.Table:
    control = pa.array([{"view": column, "reason": error}], tables.CONTROL)
    return pa.table({"view": [FAILURE_ROW], "lsn": pa.nulls(1, pa.int64()), "control": control})


def _struct_rows(column: str, table: pa.Table) -> pa.Table:
    fields = [field for field in table.schema if field.name != "lsn"]
    struct = pa.StructArray.from_arrays([table[f.name].combine_chunks() for f in fields], fields=fields)
    return pa.table({"view": pa.array([column] * table.num_rows, pa.string()), "lsn": table["lsn"], column: struct})


def _laid_out(rows: Iterator[pa.Table], span: int, schema: pa.Schema) -> pa.Table:
    """All kinds of rows in the one wide schema, absent columns null."""
    parts = [table for table in rows if table.num_rows]
    together = pa.concat_tables(parts, promote_options="default") if parts else schema.empty_table()
    size = together.num_rows
    columns = [
        pa.array([span] * size, pa.int64())
        if field.name == "span"
        else together[field.name].combine_chunks().cast(field.type)
        if field.name in together.column_names
        else pa.nulls(size, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
