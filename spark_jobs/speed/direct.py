"""The short way for small micro-batches: no Python workers, and Delta commits of a few milliseconds.

records in the driver -> master.log (delta-rs) -> the same pass, in this process -> speed.partials (delta-rs).
The rows are those of the long way (`workers`), which large micro-batches and catch-up take.
"""

import datetime as dt
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from spark_jobs import tables
from spark_jobs.activation import Entry
from spark_jobs.decode import decode_landed
from spark_jobs.dedupe import Window
from spark_jobs.speed import hot
from spark_jobs.speed.compute import (
    found_rows,
    ids_of,
    judge,
    partial_rows,
    partials_schema,
    verdict_rows,
    views_over,
)
from spark_jobs.speed.given import Given
from spark_jobs.speed.land import batch_row, schema_rows, stamped
from spark_jobs.speed.partials_step import Outcome, batch_rows, outcome_of, remember
from spark_jobs.view import View


class DirectWriter:
    """The two hot tables, opened once."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self._log = DeltaTable(tables.path(tables.MASTER_LOG))
        self._partials = DeltaTable(tables.path(tables.SPEED_PARTIALS))

    def land(self, records: pa.Table, lsn: int, control: Mapping[str, object], schemas: Sequence[Entry] = ()) -> None:
        """As `land.commit`: the records and their control row, in one commit; and schemas that come in force by it."""
        row = batch_row(lsn, control)
        day = row["landed_on"][0].as_py()
        _append(self._log, _in_schema([stamped(records, day), schema_rows(schemas, day), row], tables.LOG), lsn)

    def write_new(
        self, records: pa.Table, lsn: int, views: Sequence[View], window: Window, started_at: dt.datetime
    ) -> Outcome:
        """As `partials_step.write_new`, for one lsn."""
        decoded = decode_landed(records, self.given.activations)
        verdict = judge(ids_of(decoded.facts), window)
        passed = views_over(decoded.facts, views, verdict.duplicates, self.given.before(lsn))
        rejects = [found_rows(tables.REJECT_ROW, found) for found in (decoded.rejects, passed.rejects)]
        outcome = outcome_of(verdict, rejects, passed.failed)
        counts, schema = {lsn: records.num_rows}, partials_schema(views)
        controls = hot.control_rows(batch_rows(outcome, counts, views, started_at))
        found = [*rejects, *verdict_rows(verdict), controls]
        rows = _in_schema([schema.empty_table(), *partial_rows(passed, schema), *found], schema)
        _append(self._partials, hot.placed(rows), lsn)
        remember(outcome, counts, window)
        self.given.add(lsn, decoded.facts)
        return outcome


def _in_schema(parts: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """In one chunk: delta-rs 1.6 aborts the process where the columns of a table are cut at different places."""
    return pa.concat_tables(parts, promote_options="default").select(schema.names).cast(schema).combine_chunks()


def _append(table: DeltaTable, rows: pa.Table, lsn: int) -> None:
    table.update_incremental()  # a version that removes files since the last one would be a conflict
    properties = CommitProperties(custom_metadata={"lsn": str(lsn)})
    write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
