"""Small micro-batches: no Python workers, and Delta commits of a few milliseconds.

records in the driver -> master.log (delta-rs) -> the steps of `partials_step`, in this process -> speed.partials
(delta-rs). The rows are those that the workers write (`distributed`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from deltalake import DeltaTable

from spark_jobs.contracts import revision_rows, row_types, schema_history
from spark_jobs.contracts.revisions import Revision
from spark_jobs.contracts.schema_history import Entry, SchemaHistory
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine.decode.assemble import Decoded
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.speed.land import batch_row, stamped
from spark_jobs.speed.partials_step import Derived
from spark_jobs.speed.partials_table import OPEN, SPAN
from spark_jobs.speed.pass_rows import ids_of, partial_rows, record_rows, views_over
from spark_jobs.storage import data_files, tables
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
        parts = [stamped(records, day), schema_history.rows(schemas, day), revision_rows.rows(said, day), row]
        self._log.update_incremental()
        lands = partial(self._fence.committing, lsn=lsn)
        data_files.commit_beside([], parts, tables.path(tables.MASTER_LOG), ("landed_on", day), lands, self._log)

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
        passed = views_over(self.decoded.facts, views, duplicates, side_inputs)
        rows = [rows for _, rows in partial_rows(passed)]
        return Derived(rows, rejects=record_rows(row_types.REJECT_ROW, passed.rejects), failed=passed.failed)

    def commit(self, derived: Derived, control_rows: Sequence[pa.Table]) -> None:
        rows, root = [*derived.rows, *control_rows], tables.path(tables.SPEED_PARTIALS)
        self.table.update_incremental()  # a version that removes files since the last one would be a conflict
        data_files.commit_beside([], rows, root, (SPAN, OPEN), self.fence.committing, self.table)

    def close(self, side_inputs: SideInputs) -> None:
        side_inputs.add(self.lsn, self.decoded.facts)
