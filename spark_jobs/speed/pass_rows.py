"""The pass: decoded facts to the rows of speed.partials, for all views at once.

facts - duplicates + their outcomes -> partials per view -> rows of speed.partials, not yet written, and control rows.
Micro-batches and catch-up use it alike: rows carry their own lsn. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.dedupe import first_of_each, packed
from spark_jobs.engine.id_window import IdWindow
from spark_jobs.engine.partials import Pass, compute

FIXED = pa.schema([("view", pa.string()), ("lsn", pa.int64()), ("control", row_types.CONTROL)])
IDS = pa.schema([("identity", pa.binary(16)), ("event_type", pa.string()), *row_types.COORDINATES])
"""The columns of a fact that the verdict on duplicates needs."""


@dataclass(frozen=True)
class Verdict:
    """Which facts count and which repeat one (columns of IDS)."""

    kept: pa.Table
    duplicates: pa.Table

    @cached_property
    def ids(self) -> dict[int, bytes]:
        """Per lsn the identities that count, 16 bytes each, in the order of lsns."""
        lsns = self.kept["lsn"].to_numpy()
        order = np.argsort(lsns, kind="stable")
        distinct, starts = np.unique(lsns[order], return_index=True)
        identities = np.frombuffer(packed(self.kept), "V16")[order]
        bounds = zip(distinct.tolist(), pairwise([*starts.tolist(), len(order)]), strict=True)
        return {lsn: identities[start:end].tobytes() for lsn, (start, end) in bounds}


def partials_schema(views: Sequence[View]) -> pa.Schema:
    """The columns of speed.partials with these views, but for `span`, which is where a file lies."""
    return pa.schema([*FIXED, *[pa.field(view.column, pa.struct(list(view.partial_schema))) for view in views]])


def ids_of(facts: Mapping[str, pa.Table]) -> pa.Table:
    """Identity, event type and coordinates of all facts; record outcomes have no identity."""
    counted = record_outcomes.countable(facts).values()
    return pa.concat_tables([IDS.empty_table(), *(rows.select(IDS.names).cast(IDS) for rows in counted)])


def duplicates_verdict(ids: pa.Table, window: IdWindow) -> Verdict:
    """Say which facts count: the earliest of each identity, if no earlier micro-batch has it."""
    known = pa.array(window.known(packed(ids)))
    kept, repeated = first_of_each(ids.filter(pc.invert(known)))
    return Verdict(kept, pa.concat_tables([ids.filter(known), repeated]))


def views_over(
    facts: Mapping[str, pa.Table], views: Sequence[View], duplicates: pa.Table, side_inputs: Mapping[str, pa.Table]
) -> Pass:
    """Compute the partials of all facts but the `duplicates` (their coordinates), and of record outcomes."""
    return compute({**record_outcomes.settled(facts, duplicates), **side_inputs}, views)


def partial_rows(passed: Pass) -> Iterator[tuple[str, pa.Table]]:
    """Per view that has some its column and its rows of speed.partials: view, lsn and that column."""
    for column, table in passed.partials.items():
        if size := table.num_rows:
            fields = [field for field in table.schema if field.name != "lsn"]
            struct = pa.StructArray.from_arrays([table[f.name].combine_chunks() for f in fields], fields=fields)
            yield column, pa.table({"view": pa.repeat(column, size), "lsn": table["lsn"], column: struct})


def laid_out(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows in a wider schema, absent columns null."""
    size = rows.num_rows
    columns = [rows[f.name].cast(f.type) if f.name in rows.column_names else pa.nulls(size, f.type) for f in schema]
    return pa.table(columns, schema=schema)


def record_rows(kind: str, records: pa.Table) -> pa.Table:
    """A control row per record, with those of its columns that `control` has (schema FIXED)."""
    size, names, fields = records.num_rows, records.column_names, list(row_types.CONTROL)
    columns = [
        records[f.name].combine_chunks().cast(f.type) if f.name in names else pa.nulls(size, f.type) for f in fields
    ]
    control = pa.StructArray.from_arrays(columns, fields=fields)
    return pa.table([pa.repeat(kind, size), records["lsn"], control], schema=FIXED)


def control_rows(kind: str, controls: Iterable[tuple[int, Mapping[str, object]]]) -> pa.Table:
    """A control row for each (lsn, fields of `control`) (schema FIXED)."""
    return pa.Table.from_pylist([{"view": kind, "lsn": lsn, "control": said} for lsn, said in controls], schema=FIXED)


def verdict_rows(verdict: Verdict) -> list[pa.Table]:
    """The control rows of a verdict: the duplicates, and per lsn the identities that count, one after the other."""
    return [
        record_rows(row_types.DUPLICATE_ROW, verdict.duplicates),
        control_rows(row_types.IDS_ROW, ((lsn, {"ids": ids}) for lsn, ids in verdict.ids.items())),
    ]
