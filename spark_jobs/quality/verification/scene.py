"""What one look at the platform reads: the log, the facts and the ledger, up to one lsn."""

from dataclasses import dataclass
from functools import cached_property

import duckdb
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import Store
from spark_jobs.quality import recompute
from spark_jobs.quality.verification import completeness, scope
from spark_jobs.quality.verification.findings import Absent, Unable
from spark_jobs.quality.verification.scope import Scope
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import coverage, duckdb_reader, tables


@dataclass
class Scene:
    """One look at the platform: everything up to `head`, built things up to `cut`. seed: of a sample; None: all."""

    store: Store
    views: Views
    seed: int | None = None

    @cached_property
    def sources(self) -> dict[str, Source]:
        sources = self.store.current_sources()
        return {view.id: sources[view.id] for view in self.views if view.id in sources}

    @cached_property
    def cut(self) -> int:
        """The cut of the publication in force, 0 without one. A view that was held back has a lower one, and one that a
        rollback left as it was a higher one.
        """
        current = self.store.current_publication()
        return current.cut if current is not None and self.sources else 0

    @property
    def built_cut(self) -> int:
        """The cut. Raises Absent before anything is built."""
        if not self.cut:
            raise Absent("nothing is built yet")
        return self.cut

    @cached_property
    def read_at(self) -> int:
        """The cut by whose schemas and revisions the facts were read last: of a run that may not be the one served.

        A run that ended before it published has read them so, and one whose publication was rolled back.
        """
        return max(self.cut, self.store.decoded_cut())

    @cached_property
    def head(self) -> int:
        """The newest lsn that has partials, or is built; the log may be one ahead."""
        return max(self.cut, coverage.head()[0])

    @cached_property
    def scope(self) -> Scope:
        return scope.everything(self.head) if self.seed is None else scope.chosen(self.head, self.seed)

    @cached_property
    def log(self) -> ds.Dataset:
        return duckdb_reader.dataset(tables.MASTER_LOG)

    @cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """Relations `log` and `partials`; of the scope the tables `lsns`, `landings` (control rows), `ranges` (of
        offsets) and `records` (coordinates). `part`: the number of the scope's range.
        """
        try:
            con = duckdb_reader.connect({"partials": tables.SPEED_PARTIALS, "log": self.log})
        except duckdb_reader.NoTable as error:
            raise Unable(str(error)) from error
        parts = ", ".join(f"({n}, {first}, {last})" for n, (first, last) in enumerate(self.scope.ranges))
        con.execute(
            "CREATE TEMP TABLE lsns AS SELECT part, unnest(range(first, last + 1)) AS lsn "
            f"FROM (VALUES {parts}) p(part, first, last)"
        )
        records = self.scope.of("(SELECT * FROM log WHERE kind = 'record')", completeness.PLACE)
        con.execute(f"CREATE TEMP TABLE records AS {records}")
        control = self.scope.of(f"(SELECT * FROM log WHERE kind = '{row_types.BATCH_ROW}')", "lsn, batch")
        con.execute(
            "CREATE TEMP TABLE landings AS SELECT part, lsn, batch.records AS records, batch.accepted_loss AS loss, "
            f"batch.ranges AS ranges FROM ({control})"
        )
        con.execute(
            "CREATE TEMP TABLE ranges AS SELECT part, lsn, loss, r.topic, r.partition, r.from_offset AS start, "
            "r.until_offset AS until FROM (SELECT part, lsn, loss, unnest(ranges) AS r FROM landings)"
        )
        return con

    @cached_property
    def facts(self) -> dict[str, str]:
        """Event type -> the relation of `con` with its facts."""
        types = [contract.event_type for contract in project_contracts() if not contract.is_outcome]
        return {name: self._relation(tables.facts(name)) for name in types if duckdb_reader.exists(tables.facts(name))}

    @cached_property
    def ends(self) -> dict[str, str]:
        """What a record may have become -> a relation of `con`."""
        others = {"duplicate": tables.DUPLICATES, "quarantined record": tables.QUARANTINE}
        ends = {what: self._relation(table) for what, table in others.items()}
        return ends | {f"fact of {event_type}": relation for event_type, relation in self.facts.items()}

    def _relation(self, table: str) -> str:
        name = table.replace(".", "_")
        self.con.register(name, duckdb_reader.dataset(table))
        return name

    @cached_property
    def built(self) -> LocalAnswers:
        """What the batch tables give at the cut."""
        return LocalAnswers(self.views, self.sources, self.built_cut)

    @cached_property
    def recomputed(self) -> duckdb.DuckDBPyConnection:
        """The facts up to the cut, made once more from the log; of a large one those that are stored, as other checks
        hold them to the log by and by."""
        cut = self.built_cut
        if not self.scope.is_large:
            return recompute.facts(cut, cut=cut)
        scope.refuse_facts_ahead(self.store, cut)
        return recompute.upon(cut, cut)

    @cached_property
    def decoded(self) -> duckdb.DuckDBPyConnection:
        """The same, as the facts were read last."""
        return self.recomputed if self.read_at == self.cut else recompute.facts(self.built_cut, cut=self.read_at)
