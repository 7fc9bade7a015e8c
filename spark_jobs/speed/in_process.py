"""Small micro-batches: no Python workers, and Delta commits of a few milliseconds.

records in the driver -> master.log (delta-rs) -> the steps of `partials_step`, in this process -> speed.partials
(delta-rs). The rows are those that the workers write (`distributed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from spark_jobs.contracts import revisions, row_types, schema_history
from spark_jobs.contracts.revisions import Revision
from spark_jobs.contracts.schema_history import Entry, SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.assemble import Decoded
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.speed.land import batch_row, stamped
from spark_jobs.speed.partials_step import Derived
from spark_jobs.speed.partials_table import OPEN, SPAN
from spark_jobs.speed.pass_rows import ids_of, partial_rows, partials_schema, record_rows, views_over
from spark_jobs.storage import tables
from spark_jobs.storage.fencing import Fence
from spark_jobs.storage.side_inputs import SideInputs


class InProcessWriter:
    """The log and the partials, opened once. `history`: by which the records are judged; it may change."""

    def __init__(self, history: SchemaHistory, fence: Fence) -> None:
        self.history, self._fence = history, fence
        self._log = DeltaTable(tables.path(tables.MASTER_LOG))
        self._partials = DeltaTable(tables.path(tables.SPEED_PARTIALS))

    def land(
        self,
        records: pa.Table,
        lsn: int,
        control: Mapping[str, object],
        schemas: Sequence[Entry] = (),
        said: Sequence[Revision] = (),
    ) -> None:
        """Land records and their control row in one commit, as `land.commit`, with what comes in force by it."""
        row = batch_row(records.num_rows, lsn, control)
        day = row["landed_on"][0].as_py()
        parts = [stamped(records, day), schema_history.rows(schemas, day), revisions.rows(said, day), row]
        _append(self._log, _in_schema(parts, row_types.LOG), self._fence, lsn)

    def decode(self, records: pa.Table, lsn: int) -> "InProcessBatch":
        """Decode the records of one lsn."""
        decoded = decode_logged(records, self.history)
        rejects = record_rows(row_types.REJECT_ROW, decoded.rejects)
        return InProcessBatch(self._partials, self._fence, lsn, decoded, rejects)


@dataclass(frozen=True)
class InProcessBatch:
    """A micro-batch in memory (a `partials_step.Batch`)."""

    table: DeltaTable
    fence: Fence
    lsn: int
    decoded: Decoded
    rejects: pa.Table

    def ids(self) -> pa.Table:
        return ids_of(self.decoded.facts)

    def derive(self, views: Sequence[View], duplicates: pa.Table, side_inputs: Mapping[str, pa.Table]) -> Derived:
        passed, schema = views_over(self.decoded.facts, views, duplicates, side_inputs), partials_schema(views)
        rows = [schema.empty_table(), *partial_rows(passed, schema)]
        return Derived(rows, rejects=record_rows(row_types.REJECT_ROW, passed.rejects), failed=passed.failed)

    def commit(self, derived: Derived, control_rows: Sequence[pa.Table]) -> None:
        rows = _in_schema([*derived.rows, *control_rows], derived.rows[0].schema)
        _append(self.table, rows.append_column(SPAN, pa.repeat(pa.scalar(OPEN, pa.int64()), rows.num_rows)), self.fence)

    def close(self, side_inputs: SideInputs) -> None:
        side_inputs.add(self.lsn, self.decoded.facts)


def _in_schema(parts: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows in one chunk: delta-rs 1.6 aborts the process if columns of a table are cut at different rows."""
    return pa.concat_tables(parts, promote_options="default").select(schema.names).cast(schema).combine_chunks()


def _append(table: DeltaTable, rows: pa.Table, fence: Fence, lsn: int | None = None) -> None:
    table.update_incremental()  # a version that removes files since the last one would be a conflict
    with fence.committing(table, lsn) as properties:
        write_deltalake(table, rows, mode="append", schema_mode="merge", commit_properties=properties)
