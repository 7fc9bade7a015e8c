"""`tidemark verify`: the invariants, looked at on the running platform.

Kafka, the tables' files, the ledger, the producer ledger, the oracle, a pin over Thrift -> one Finding per law.
No JVM is started. Each check names what it compared and the first breaches; what it cannot look at, it says.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import duckdb

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import Store
from spark_jobs.quality import recompute
from spark_jobs.quality.verification import answers, completeness, continuity, kafka_gaps, recompute_checks
from spark_jobs.quality.verification.expected import ledger_files
from spark_jobs.quality.verification.findings import Absent, Check, Finding, State, Unable
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import coverage, duckdb_reader, tables


@dataclass
class Scene:
    """One look at the platform: everything up to `head`, built things up to `cut`."""

    store: Store
    views: Views

    @cached_property
    def sources(self) -> dict[str, Source]:
        sources = self.store.current_sources()
        return {view.id: sources[view.id] for view in self.views if view.id in sources}

    @cached_property
    def cut(self) -> int:
        return max((source.cut for source in self.sources.values()), default=0)

    @property
    def built_cut(self) -> int:
        """The cut. Raises Absent before anything is built."""
        if not self.cut:
            raise Absent("nothing is built yet")
        return self.cut

    @cached_property
    def head(self) -> int:
        """The newest lsn that has partials, or is built; the log may be one ahead."""
        return max([self.cut, *coverage.covered(self.cut)])

    @cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """Relations `log` and `partials`; up to head the tables `records` (coordinates) and `ranges` (of offsets)."""
        try:
            con = duckdb_reader.connect({"partials": tables.SPEED_PARTIALS, "log": tables.MASTER_LOG})
        except duckdb_reader.NoTable as error:
            raise Unable(str(error)) from error
        con.execute(
            'CREATE TEMP TABLE records AS SELECT lsn, topic, partition, "offset" FROM log '
            f"WHERE kind = 'record' AND lsn <= {self.head:d}"
        )
        con.execute(
            "CREATE TEMP TABLE ranges AS SELECT lsn, loss, r.topic, r.partition, r.from_offset AS start, "
            "r.until_offset AS until FROM (SELECT lsn, batch.accepted_loss AS loss, unnest(batch.ranges) AS r FROM log "
            f"WHERE kind = '{row_types.BATCH_ROW}' AND lsn <= {self.head:d})"
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
    def recomputed(self) -> duckdb.DuckDBPyConnection:
        """The facts up to the cut, made once more from the log."""
        return recompute.facts(self.built_cut, cut=self.cut)


def checks(scene: Scene) -> Iterator[Check]:
    """Every check that needs the log, Kafka or the tables; those of served answers are in `answers`."""
    cuts = {view.column: scene.sources[view.id].cut for view in scene.views if view.id in scene.sources}
    yield completeness.OFFSETS, lambda: kafka_gaps.offsets_are_in_the_log_once(scene.con)
    yield completeness.ENDS, lambda: completeness.records_are_accounted_for(scene.con, scene.built_cut, scene.ends)
    yield completeness.ONCE, lambda: completeness.events_count_once(scene.con, scene.built_cut, scene.facts)
    yield completeness.BYTES, lambda: completeness.bytes_are_the_producers(scene.con, ledger_files(), scene.head)
    yield continuity.LSNS, lambda: continuity.lsns_are_contiguous(scene.con, scene.head)
    yield continuity.RANGES, lambda: continuity.offsets_chain(scene.con)
    yield continuity.PLACES, lambda: continuity.records_lie_in_their_range(scene.con)
    yield continuity.COVERAGE, lambda: continuity.views_are_covered(scene.con, cuts, scene.head)
    yield recompute_checks.FACTS, lambda: recompute_checks.facts_stand(scene.recomputed, scene.built_cut)
    for view in scene.views:
        yield recompute_checks.law_of(view), partial(_view_stands, scene, view)


def _view_stands(scene: Scene, view: View) -> Finding:
    source = scene.sources.get(view.id)
    if source is None or source.batch_version is None:
        raise Absent("not built yet")
    if source.cut != scene.cut:
        raise Absent(f"held back at cut {source.cut}, the facts are at {scene.cut}")
    return recompute_checks.view_stands(scene.recomputed, LocalAnswers(scene.views, scene.sources, source.cut), view)


def verify(store: Store, views: Views, say: Callable[[str], None], only: frozenset[str] = frozenset()) -> list[Finding]:
    """Every finding, in order. `only`: these invariants, all where it is empty."""
    findings = []
    with answers.opened(store, views) as of_answers:
        for law, check in chain(checks(Scene(store, views)), of_answers):
            if not only or law.invariant in only:
                say(f"{law.invariant}: {law.text}")
                findings.append(law.looked(check))
    return findings


def exit_code(findings: list[Finding]) -> int:
    """1 where a law is broken, else 2 where one could not be looked at."""
    states = {finding.state for finding in findings}
    return 1 if State.BREACH in states else 2 if State.UNABLE in states or not findings else 0
