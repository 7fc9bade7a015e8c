"""What the gate audits of a run: its new facts, its completeness, its batch tables, each with its suite.

run, what it built -> (Suite, the Relation at the exact version) one by one. What is only counted comes from the files.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import partials
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import Source
from spark_jobs.quality.expectations import suites
from spark_jobs.quality.expectations.relations import Counted, Relation, Stored
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.spark_reader import in_days

DUCKDB = Dialect.DUCKDB


@dataclass(frozen=True)
class Audited:
    """What is audited of a run: its new facts, its completeness, its batch tables at their versions."""

    run: Run
    views: Views
    new: Mapping[str, Source]
    old: Mapping[str, Source]
    after: int
    days: list[str]

    def suites(self) -> Iterator[tuple[Suite, Relation]]:
        """Every suite, and the relation that it checks.

        What was audited before is left out: a view whose version stays, an event type without new facts (the suite of
        completeness finds missing ones).
        """
        now, known = datetime.now(UTC), project_contracts()
        yield suites.of_completeness(), Counted(self._completeness)
        for contract in known:
            table = tables.facts(contract.event_type)
            if self._has_new(table):
                yield suites.of_facts(contract, self.run.cut, now), Stored(table, where=self._unaudited())
        changed = [view for view in self.views if self._is_new(view)]
        full = self._with_facts(changed)
        for view in changed:
            required = suites.required_of(known, view.event_columns)
            made = suites.of_view(view, required, must_have_rows=view.id in full)
            for suite, version in zip(made, self.new[view.id].versions, strict=True):
                yield suite, Stored(suite.table, version)

    def _is_new(self, view: View) -> bool:
        built, old = self.new[view.id], self.old.get(view.id)
        return old is None or built.versions != old.versions

    def _has_new(self, table: str) -> bool:
        """Whether the table has rows that no published run has audited. One that is missing is not passed over."""
        if not duckdb_reader.exists(table):
            return True
        days = pa.array(self._days()).cast(pa.date32())
        of = (ds.field("lsn") > self.after) | ds.field("day").isin(days)
        return bool(duckdb_reader.dataset(table).head(1, columns=["lsn"], filter=of).num_rows)

    def _days(self) -> list[str]:
        return sorted({*self.run.days, *self.days})

    def _unaudited(self) -> str:
        """Predicate on rows past the published cut, and on those of days decoded again."""
        return f"lsn > {self.after:d} OR {in_days(self._days())}"

    def _completeness(self) -> pa.Table:
        """Per topic: how many records landed in (after, cut], and what became of them."""
        within = f"lsn > {self.after:d} AND lsn <= {self.run.cut:d}"
        facts = [tables.facts(contract.event_type) for contract in project_contracts() if not contract.is_outcome]
        ends = [*facts, tables.QUARANTINE, tables.DUPLICATES]
        parts = [f"SELECT topic, TRUE AS landed FROM log WHERE kind = 'record' AND {within}"]
        parts += [f"SELECT topic, FALSE AS landed FROM {quote(table, DUCKDB)} WHERE {within}" for table in ends]
        counts = "count_if(landed) AS records, count_if(NOT landed) AS accounted_for"
        con = duckdb_reader.connect({"log": tables.MASTER_LOG, **{table: table for table in ends}})
        counted = f"SELECT topic, {counts} FROM ({' UNION ALL '.join(parts)}) GROUP BY topic"
        return con.sql(counted).to_arrow_table()

    def _with_facts(self, of: list[View]) -> set[str]:
        """Ids of the views that have at least one fact to show."""
        types = {event_type for view in of for event_type in view.event_types}
        con = duckdb_reader.connect({event_type: tables.facts(event_type) for event_type in types})
        return {view.id for view in of if con.execute(f"FROM ({self._counted(view)}) LIMIT 1").fetchone()}

    def _counted(self, view: View) -> str:
        """The facts that count in a view, not yet grouped."""
        cut = f"WHERE lsn <= {self.run.cut:d}"
        facts_of = {name: f"(SELECT * FROM {quote(name, DUCKDB)} {cut})" for name in view.event_types}
        return partials.counted(view, DUCKDB, facts_of)
