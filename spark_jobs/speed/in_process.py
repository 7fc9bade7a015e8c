"""The short way for small micro-batches: no Python workers, and Delta commits of a few milliseconds.

records in the driver -> master.log (delta-rs) -> the same pass, in this process -> speed.partials (delta-rs).
The rows are those of the long way (`workers`), which large micro-batches and catch-up take.
"""

import datetime as dt
from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import Entry
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.speed import partials_table
from spark_jobs.speed.land import batch_row, schema_rows, stamped
from spark_jobs.speed.partials_step import Outcome, batch_rows, outcome_of, remember
from spark_jobs.speed.pass_rows import (
    duplicates_verdict,
    found_rows,
    ids_of,
    partial_rows,
    partials_schema,
    verdict_rows,
    views_over,
)
from spark_jobs.storage import tables
from spark_jobs.storage.side_inputs import SideInputs


class InProcessWriter:
    """The two hot tables, opened once."""

    def __init__(self, side_inputs: SideInputs) -> None:
        self.side_inputs = side_inputs
        self._log = DeltaTable(tables.path(tables.MASTER_LOG))
        self._partials = DeltaTable(tables.path(tables.SPEED_PARTIALS))

    def land(self, records: pa.Table, lsn: int, control: Mapping[str, object], schemas: Sequence[Entry] = ()) -> None:
        """As `land.commit`: the records and their control row, in one commit; and schemas that come in force by it."""
        row = batch_row(lsn, control)
        day = row["landed_on"][0].as_py()
        _append(self._log, _in_schema([stamped(records, day), schema_rows(schemas, day), row], row_types.LOG), lsn)

    def write_new(
        self, records: pa.Table, lsn: int, views: Sequence[View], window: IdWindow, started_at: dt.datetime
    ) -> Outcome:
        """As `partials_step.write_new`, for one lsn."""
        decoded = decode_logged(records, self.side_inputs.history)
        verdict = duplicates_verdict(ids_of(decoded.facts), window)
        passed = views_over(decoded.facts, views, verdict.duplicates, self.side_inputs.before(lsn))
        rejects = [found_rows(row_types.REJECT_ROW, found) for found in (decoded.rejects, passed.rejects)]
        outcome = outcome_of(verdict, rejects, passed.failed)
        counts, schema = {lsn: records.num_rows}, partials_schema(views)
        controls = partials_table.control_rows(batch_rows(outcome, counts, views, started_at))
        found = [*rejects, *verdict_rows(verdict), controls]
        rows = _in_schema([schema.empty_table(), *partial_rows(passed, schema), *found], schema)
        _append(self._partials, partials_table.placed(rows), lsn)
        remember(outcome, counts, window)
        self.side_inputs.add(lsn, decoded.facts)
        return outcome


def _in_schema(parts: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """In one chunk: delta-rs 1.6 aborts the process where the columns of a table are cut at different places."""
    return pa.concat_tables(parts, promote_options="default").select(schema.names).cast(schema).combine_chunks()


def _append(table: DeltaTable, rows: pa.Table, lsn: int) -> None:
    table.update_incremental()  # a version that removes files since the last one would be a conflict
    properties = CommitProperties(custom_metadata={"lsn": str(lsn)})
    write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
