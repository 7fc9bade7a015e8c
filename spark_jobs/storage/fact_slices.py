"""Slices of the facts: which files can hold them, and the rows themselves.

event type, Slice -> files that can hold such facts, by their statistics -> in a task: the columns and rows wanted.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake import DeltaTable

from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.data_files import those_within


@dataclass(frozen=True)
class Slice:
    """Facts with an lsn in (above, upto], and of these `days` (ISO dates) the older ones too."""

    upto: int
    above: int = 0
    days: tuple[str, ...] = ()

    def expression(self) -> ds.Expression:
        lsn, wanted = ds.field("lsn"), ds.field("lsn") > self.above
        if self.days:
            wanted |= ds.field("day").isin(pa.array(map(date.fromisoformat, self.days), pa.date32()))
        return wanted & (lsn <= self.upto)

    def among(self, files: pa.Table) -> pa.Table:
        """files: a table's flat add actions. Those whose file can hold such facts, each once."""
        days = [(day, day) for day in map(date.fromisoformat, self.days)]
        new = those_within(files, {"lsn": [(self.above + 1, self.upto)] if self.above < self.upto else []})
        older = those_within(files, {"lsn": [(1, self.above)], "day": days})
        return pa.concat_tables([new, older.filter(pc.invert(pc.is_in(older["path"], new["path"])))])

    def files(self, event_type: str) -> dict[str, int]:
        """The addresses of the files that can hold such facts, and how many rows each has."""
        table = tables.facts(event_type)
        if not duckdb_reader.exists(table):
            return {}
        files = self.among(pa.table(DeltaTable(tables.path(table)).get_add_actions(flatten=True)))
        addresses = (f"{tables.path(table)}/{path}" for path in files["path"].to_pylist())
        return dict(zip(addresses, files["num_records"].to_pylist(), strict=True))


def in_days(days: Iterable[str], column: str = "day") -> str:
    """Predicate on a column of days; the days are ISO dates that the ledger holds."""
    listed = ", ".join(f"DATE '{day}'" for day in days)
    return f"{column} IN ({listed})" if listed else "FALSE"


def filtered(facts: pa.Table, wanted: Slice) -> pa.Table:
    """The facts of the slice; the same table where all are."""
    lsns = pc.min_max(facts["lsn"]).as_py()
    if lsns["min"] is None or (lsns["min"] > wanted.above and lsns["max"] <= wanted.upto):
        return facts
    return facts.filter(wanted.expression())
