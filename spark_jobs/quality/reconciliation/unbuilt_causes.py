"""Find the records past the cut that the speed layer was bound to miss: the named limits before the next build.

log (cut, head] + identities of the facts -> duplicates that speed counted, facts that count. They prove causes
for I3 between publications, as the duplicates table does for agreement at one.
"""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import record_outcomes
from spark_jobs.quality import recompute
from spark_jobs.quality.recompute import PLACE
from spark_jobs.quality.reconciliation.causes import Causes, Facts, counted_by_speed
from spark_jobs.storage import coverage, duckdb_reader, tables


class UnbuiltCauses(Causes):
    """The records that batch will see differently at `head`, found by decoding those past `cut`."""

    def __init__(self, cut: int, head: int) -> None:
        self.old_cut, self.new_cut, self.changed = cut, head, {}
        self.coverage = coverage.covered(cut)
        con = recompute.facts(head, above=cut)
        _add_repetitions(con, cut)
        recompute.settle(con)
        self.unmarked, self.accepted_later = _unmarked(con, cut, head), {}
        self._facts_past_cut = {
            event_type: con.sql(f"FROM facts_{event_type}").to_arrow_table()
            for event_type in project_contracts().event_types
        }

    def _all_of(self, event_type: str) -> pa.Table:
        built = super()._all_of(event_type)
        past = self._facts_past_cut[event_type].select(built.schema.names).cast(built.schema)
        return pa.concat_tables([built.filter(pc.less_equal(built["lsn"], self.old_cut)), past])

    def settled_facts(self, view: View, lsns: pa.Array) -> Iterator[Facts]:
        for event_type in view.event_types:
            facts = self._facts_past_cut[event_type]
            if (mine := facts.filter(pc.is_in(facts["lsn"], lsns))).num_rows:
                yield {event_type: mine}


def _add_repetitions(con: duckdb.DuckDBPyConnection, cut: int) -> None:
    """Add to `duplicates` what repeats a fact at or below the cut."""
    for contract in project_contracts():
        table = tables.facts(contract.event_type)
        if cut and not contract.is_outcome and duckdb_reader.exists(table):
            con.register("stored_facts", duckdb_reader.dataset(table))
            con.execute(
                f"INSERT INTO duplicates SELECT {PLACE}, event_type, identity, timestamp "
                f"FROM {recompute.all_of(contract.event_type)} ANTI JOIN duplicates USING ({PLACE}) "
                f"WHERE identity IN (SELECT identity FROM stored_facts WHERE lsn <= {cut:d})"
            )


def _unmarked(con: duckdb.DuckDBPyConnection, cut: int, head: int) -> Facts:
    con.register("partials", duckdb_reader.dataset(tables.SPEED_PARTIALS))
    con.execute(f"CREATE TEMP TABLE counted AS {counted_by_speed(cut, head)}")
    facts = {
        event_type: con.sql(f"FROM {recompute.all_of(event_type)} SEMI JOIN counted USING ({PLACE})").to_arrow_table()
        for event_type in project_contracts().event_types
    }
    return record_outcomes.either_way({event_type: rows for event_type, rows in facts.items() if rows.num_rows})
