"""What readers should see of some keys: answers of just the records that can matter to them.

stored facts, the log past the cut -> facts of the keys -> recompute | their records -> the oracle -> rows of the keys
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

import duckdb
import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import serving_plan
from spark_jobs.engine.chained_view import ChainedView, Served
from spark_jobs.engine.partials import of_facts
from spark_jobs.expressions.dialect import Dialect, listed, quote_text
from spark_jobs.quality.recompute import PLACE, Recomputed, facts_of
from spark_jobs.quality.verification.expected import (
    Expected,
    SecondWay,
    by_oracle,
    oracle_of_project,
    write_records,
)
from spark_jobs.quality.verification.scope import Scope, stored_names
from spark_jobs.storage import duckdb_reader

D = Dialect.DUCKDB
MOST_RECORDS = 50_000
"""Of a view, for the oracle, which reads them one by one; with more the rows are recomputed."""


@dataclass
class SampledWay(SecondWay):
    """The rows of the keys that `scope` has of a view. `views`: those that will be asked."""

    is_large: bool = True
    scope: Scope = field(kw_only=True)
    views: list[Served] = field(kw_only=True)

    @cached_property
    def facts(self) -> duckdb.DuckDBPyConnection:
        return self.facts_at(self.cut)

    def expected(self, view: Served) -> Expected:
        """A chained view has no keys of its own: its rows are what the files of its base give."""
        if isinstance(view, ChainedView):
            return Expected(self.asked.con.sql(self.asked.answer(view)).to_arrow_table(), "the files of its base")
        if view.id in self._with_records:
            with suppress(KeyError):
                return self._by_oracle(view)
        parts = Recomputed(self.facts, self.asked.in_force, self.asked.now, only={view.id: self._of_keys(view)})
        return Expected(self.facts.sql(serving_plan.answer(view, parts)).to_arrow_table(), "recomputing")

    def _of_keys(self, view: View) -> str:
        return self.scope.condition(view, self.asked.sources[view.id], D, stored_names(view))

    def _by_oracle(self, view: View) -> Expected:
        file = self.folder / f"{view.id}.parquet"
        records = f"SELECT * FROM {self._records} SEMI JOIN of_{view.id} USING ({PLACE})"
        duckdb_reader.write_file(records, self.facts, file)
        expected = by_oracle(self.oracle_over(file, self.cut), view)
        self.facts.register("answered", expected.rows)
        where = self.scope.condition(view, self.asked.sources[view.id], D)
        return replace(expected, rows=self.facts.sql(f"SELECT * FROM answered WHERE {where}").to_arrow_table())

    @cached_property
    def _with_records(self) -> list[str]:
        """The ids of the views for the oracle, each with a table `of_<id>`: where the records are that matter to it."""
        if oracle_of_project() is None:
            return []
        few = []
        for view in self.views:
            if not isinstance(view, ChainedView) and not _reads_outcomes(view):
                places = " UNION ALL ".join(f"SELECT {PLACE} FROM ({rows})" for rows in self._matters(view))
                some = f"SELECT DISTINCT {PLACE} FROM ({places}) LIMIT {MOST_RECORDS + 1}"
                self.facts.execute(f"CREATE TEMP TABLE of_{view.id} AS {some}")
                [(count,)] = self.facts.execute(f"SELECT count(*) FROM of_{view.id}").fetchall()
                few += [view.id] if count <= MOST_RECORDS else []
        return few

    def _matters(self, view: View) -> Iterable[str]:
        """SELECTs with the coordinates of all facts that the answer for the keys may be made of."""
        positions = [name for name, _ in row_types.COORDINATES]
        yield f"SELECT * FROM ({of_facts(view, facts_of(view), positions)}) WHERE {self._of_keys(view)}"
        beside = [other for other in self.asked.in_force if other.name in view.looked_up]
        for event_type in {*view.side_inputs, *(name for other in beside for name in other.event_types)}:
            yield f"FROM facts_{event_type}"

    @cached_property
    def _records(self) -> str:
        """A relation of these records, of all views, which the log is read for once."""
        places = " UNION ".join(f"SELECT {PLACE} FROM of_{view}" for view in self._with_records)
        self.facts.register("log", self.log)
        columns = listed(row_types.RECORD.names, D)
        found = self.facts.sql(
            f"SELECT {columns} FROM log SEMI JOIN ({places}) p USING ({PLACE}) WHERE kind = '{row_types.RECORD_ROW}'"
        )
        file = self.folder / "records.parquet"
        logged = found.to_arrow_table()
        logged = logged.append_column("kind", pa.repeat(row_types.RECORD_ROW, logged.num_rows))
        write_records(logged, self.asked.head, file)
        self.facts.execute(f"CREATE TEMP TABLE records AS FROM read_parquet({quote_text(str(file), D)})")
        return "records"


def _reads_outcomes(view: View) -> bool:
    """Whether its rows tell what became of records, of which each may depend on others."""
    return any(project_contracts().of(name).is_outcome for name in view.event_types)
