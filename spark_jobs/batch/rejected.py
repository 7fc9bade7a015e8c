"""Record the facts that views reject: those of the slices that were read stand in the place of what was known of them.

Wanted, files that tasks wrote -> one version of master.view_rejects, a partition per view.
A build that nobody publishes leaves the rows that the next one will write again.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from spark_jobs.batch.derive import Staged, Wanted
from spark_jobs.engine import partials
from spark_jobs.storage import data_files, ddl, duckdb_reader, tables
from spark_jobs.storage.data_files import Committing, FileWriter, Written
from spark_jobs.storage.fact_slices import Slice
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.task_files import PORTION

VIEW = "view"
SCHEMA = pa.schema([(VIEW, pa.string()), *partials.REJECTED])


def create() -> None:
    """Create the table, unless it exists."""
    ddl.create(tables.VIEW_REJECTS, SCHEMA, partition_by=[VIEW], properties=ddl.looked_up_by("lsn", "day"))


def record(wanted: Sequence[Wanted], staged: Mapping[str, Staged], committing: Committing) -> None:
    """Replace what the views rejected of the wanted facts by what is staged."""
    table, removed, files = DeltaTable(tables.path(tables.VIEW_REJECTS)), list[str](), list[Written]()
    known = pa.table(table.get_add_actions(flatten=True))
    with ExitStack() as open_files:
        for facts, view_id in ((one.facts, view.id) for one in wanted for view in one.views):
            files += staged[view_id].rejected if view_id in staged else ()
            for path in _overlapping(known, facts, view_id):
                removed.append(path)
                writer = open_files.enter_context(FileWriter(tables.path(tables.VIEW_REJECTS), (VIEW, view_id)))
                for rows in _outside(path, facts):
                    writer.add(rows)
                files += writer.written()
        if removed or files:
            data_files.swap(table, removed, files, committing)


def _overlapping(known: pa.Table, facts: Slice, view_id: str) -> list[str]:
    """The paths of the view's files that may have rows of the slice. known: the table's flat add actions."""
    files = facts.among(known)
    return files.filter(pc.equal(files[f"partition.{VIEW}"], view_id))["path"].to_pylist() if files.num_rows else []


def _outside(path: str, facts: Slice) -> Iterator[pa.Table]:
    address = f"{tables.path(tables.VIEW_REJECTS)}/{path}"
    rows = ds.dataset(address, schema=partials.REJECTED, format="parquet")
    for batch in in_portions(rows, PORTION, ~facts.expression()):
        yield pa.Table.from_batches([batch])


def of_view(view_id: str, above: int, upto: int) -> pa.Table:
    """What the view's builds rejected of (above, upto]: the columns of partials.REJECTED."""
    if not duckdb_reader.exists(tables.VIEW_REJECTS):
        return partials.REJECTED.empty_table()
    mine = (ds.field(VIEW) == view_id) & (ds.field("lsn") > above) & (ds.field("lsn") <= upto)
    return duckdb_reader.dataset(tables.VIEW_REJECTS).to_table(partials.REJECTED.names, filter=mine)
