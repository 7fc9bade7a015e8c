"""Make the tables of the `decode` step, and replace rows in them by a run's rows.

Contracts -> facts.<type>, master.quarantine, master.duplicates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from spark_jobs.batch.decode_job import QUARANTINED, fact_columns
from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.storage import data_files, ddl, spark_writer, tables
from spark_jobs.storage.data_files import Written
from spark_jobs.storage.lsn_ranges import Scope

DUPLICATE = pa.schema([*row_types.COORDINATES, ("event_type", pa.string()), ("identity", pa.binary())])


def create() -> None:
    """Create every table of this step, with a column for every field of its contract."""
    # What finds the files of a day, a time or a range of lsns; statistics of other columns cost time with every row.
    statistics = ddl.looked_up_by("lsn", "day", "occurred_at")
    for contract in project_contracts():
        ddl.create(tables.facts(contract.event_type), fact_columns(contract), properties=statistics)
    ddl.create(tables.QUARANTINE, QUARANTINED)
    ddl.create(tables.DUPLICATES, DUPLICATE)


@dataclass(frozen=True)
class Output:
    """Rows for a table, and the files that hold exactly these rows, if any.

    also_again: replace the table's rows of the lsns decoded again too, not only of the new ones.
    """

    table: str
    rows: DataFrame
    has_rows: bool
    also_again: bool
    files: Sequence[Written] = ()


def replace(output: Output, todo: Scope) -> None:
    """Replace the table's rows of the scope.

    Where the table has no such rows, as in every first try of new lsns, the files become part of it as they are.
    """
    where = todo.sql(only_new=not output.also_again)
    if output.also_again or _newest_lsn(output.table) > todo.previous:
        spark_writer.replace_where(output.rows.where(where), output.table, where)
    elif output.has_rows and output.files and not todo.again:
        data_files.commit(tables.path(output.table), output.files, {"cut": str(todo.cut)})
        return
    elif output.has_rows:
        spark_writer.append(output.rows.where(where), output.table)
    data_files.discard(output.files)


def _newest_lsn(table: str) -> int:
    """The newest lsn, from the table's file statistics; 2**63 - 1 if a file has none."""
    files = pa.table(DeltaTable(tables.path(table)).get_add_actions(flatten=True))
    if not files.num_rows:
        return 0
    newest: Iterable[int | None] = files["max.lsn"].to_pylist() if "max.lsn" in files.column_names else [None]
    return max(2**63 - 1 if lsn is None else lsn for lsn in newest)
