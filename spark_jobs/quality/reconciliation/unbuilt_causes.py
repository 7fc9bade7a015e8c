"""Find the records past the cut that the speed layer was bound to miss: the named limits before the next build.

log (cut, head] + identities of the facts -> duplicates that speed counted, facts that count. They prove causes
for I3 between publications, as the duplicates table does for agreement at one.
"""

from collections.abc import Iterator

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import record_outcomes
from spark_jobs.quality import recompute
from spark_jobs.quality.reconciliation.causes import Causes, Facts
from spark_jobs.storage import coverage, duckdb_reader, log_reader, tables

PLACE = 'lsn, topic, partition, "offset"'


class UnbuiltCauses(Causes):
    """The records that batch will see differently at `head`, found by decoding those past `cut`."""

    def __init__(self, cut: int, head: int) -> None:
        self.old_cut, self.new_cut, self.changed = cut, head, {}
        self.coverage = coverage.covered(cut)
        con = recompute.connect()
        recompute.facts(con, recompute.records(head, above=cut), log_reader.read_schema_history())
        _add_repetitions(con, cut)
        self.unmarked, self.accepted_later = _unmarked(con, cut, head), {}
        self._facts_past_cut = {
            contract.event_type: con.sql(recompute.settled(con, contract, "losers")).to_arrow_table()
            for contract in project_contracts()
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
    """Add to `losers` what repeats a fact at or below the cut."""
    for contract in project_contracts():
        table = tables.facts(contract.event_type)
        if cut and not contract.is_outcome and duckdb_reader.exists(table):
            con.register("stored_facts", duckdb_reader.dataset(table))
            con.execute(
                f"INSERT INTO losers SELECT {PLACE}, event_type, identity, timestamp FROM {recompute.all_of(contract)} "
                f"WHERE identity IN (SELECT identity FROM stored_facts WHERE lsn <= {cut:d}) "
                f"AND ({PLACE}) NOT IN (SELECT ({PLACE}) FROM losers)"
            )


def _unmarked(con: duckdb.DuckDBPyConnection, cut: int, head: int) -> Facts:
    con.register("partials", duckdb_reader.dataset(tables.SPEED_PARTIALS))
    con.execute(
        f"CREATE TEMP TABLE counted AS SELECT {PLACE} FROM losers EXCEPT "
        'SELECT lsn, control.topic, control.partition, control."offset" FROM partials '
        f"WHERE view = '{row_types.DUPLICATE_ROW}' AND lsn > {cut:d} AND lsn <= {head:d}"
    )
    new = {}
    for contract in project_contracts():
        of = f'SELECT * FROM {recompute.all_of(contract)} SEMI JOIN counted USING (lsn, topic, partition, "offset")'
        if (facts := con.sql(of).to_arrow_table()).num_rows:
            new[contract.event_type] = facts
    return record_outcomes.either_way(new)
