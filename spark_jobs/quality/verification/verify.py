"""`tidemark verify`: the invariants, looked at on the running platform.

Kafka, the tables' files, the ledger, the producers' ledger, the oracle, a pin over Thrift -> one Finding per law.
No JVM is started. Each check names what it compared and the first breaches; what it cannot look at, it says.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import duckdb

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.ledger.source import Source
from spark_jobs.ledger.store import Store
from spark_jobs.quality import recompute
from spark_jobs.quality.verification import (
    answers,
    breach_queries,
    completeness,
    continuity,
    kafka_gaps,
    recompute_checks,
)
from spark_jobs.quality.verification.findings import Absent, Finding, State, Unable, looked
from spark_jobs.registry.views import Views
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.settings import settings
from spark_jobs.storage import coverage, duckdb_reader, tables

Say = Callable[[str], None]
Check = tuple[str, str, Callable[[], Finding]]
"""Invariant, law, and how to look."""


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

    @cached_property
    def head(self) -> int:
        """The newest lsn that has partials, or is built; the log may be one ahead."""
        return max([self.cut, *coverage.covered(self.cut)])

    @cached_property
    def con(self) -> duckdb.DuckDBPyConnection:
        """Relations `partials` and `log`, the tables `records` and `ranges` up to head; facts by their names."""
        try:
            partials = duckdb_reader.dataset(tables.SPEED_PARTIALS)
            con = duckdb_reader.connect({"partials": partials, "log": tables.MASTER_LOG})
        except duckdb_reader.NoTable as error:
            raise Unable(str(error)) from error
        breach_queries.prepare(con, self.head)
        return con

    @cached_property
    def derived(self) -> dict[str, str]:
        """What a record may have become -> a relation of `con`."""
        if not self.cut:
            raise Absent("nothing is built yet")
        found = {"duplicate": tables.DUPLICATES, "quarantined record": tables.QUARANTINE}
        known = [one.event_type for one in project_contracts() if not one.is_outcome]
        found |= {f"fact of {one}": tables.facts(one) for one in known if duckdb_reader.exists(tables.facts(one))}
        for table in found.values():
            self.con.register(_relation(table), duckdb_reader.dataset(table))
        return {what: _relation(table) for what, table in found.items()}

    @cached_property
    def again(self) -> duckdb.DuckDBPyConnection:
        """Where the facts are made once more."""
        return recompute.connect()


def _relation(table: str) -> str:
    return table.replace(".", "_")


def checks(scene: Scene) -> Iterator[Check]:
    """Every check that needs the log, Kafka or the tables; those of served answers are in `served`."""
    cuts = {view.column: scene.sources[view.id].cut for view in scene.views if view.id in scene.sources}
    yield "I1", completeness.OFFSETS, lambda: _kafka(scene)
    yield "I1", completeness.ENDS, lambda: completeness.records_are_accounted_for(
        scene.con, scene.cut, scene.derived)  # fmt: skip
    yield "I1", completeness.ONCE, lambda: completeness.events_count_once(scene.con, scene.cut, _facts(scene))
    yield "I2", completeness.BYTES, lambda: completeness.bytes_are_the_producers(
        scene.con, ledger_files(), scene.head)  # fmt: skip
    yield "I4", continuity.LSNS, lambda: continuity.lsns_are_contiguous(scene.con, scene.head)
    yield "I4", continuity.RANGES, lambda: continuity.offsets_chain(scene.con)
    yield "I4", continuity.PLACES, lambda: continuity.records_lie_in_their_range(scene.con)
    yield "I4", continuity.COVERAGE, lambda: continuity.views_are_covered(scene.con, cuts, scene.head)
    yield "I7", recompute_checks.FACTS, lambda: _facts_stand(scene)
    for view in scene.views:
        yield "I7", f"{view.id} is what its facts give", lambda view=view: _view_stands(scene, view)  # type: ignore[misc]


def _kafka(scene: Scene) -> Finding:
    con = scene.con
    with kafka_gaps.broker(project_contracts().topics) as (available, count):
        return completeness.offsets_are_in_the_log_once(con, available, count)


def _facts(scene: Scene) -> dict[str, str]:
    prefix = "fact of "
    return {what.removeprefix(prefix): name for what, name in scene.derived.items() if what.startswith(prefix)}


def _facts_stand(scene: Scene) -> Finding:
    if not scene.cut:
        raise Absent("nothing is built yet")
    return recompute_checks.facts_stand(scene.again, scene.cut)


def _view_stands(scene: Scene, view: View) -> Finding:
    source = scene.sources.get(view.id)
    if source is None or source.batch_version is None:
        raise Absent("not built yet")
    if source.cut != scene.cut:
        raise Absent(f"held back at cut {source.cut}, the facts are at {scene.cut}")
    return recompute_checks.view_stands(scene.again, LocalAnswers(scene.views, scene.sources, source.cut), view)


def ledger_files() -> list[Path]:
    """What producers on this machine wrote down."""
    return sorted(settings().producer_ledger.glob("*/[0-9]*.parquet"))


def verify(store: Store, views: Views, say: Say, only: frozenset[str] = frozenset()) -> list[Finding]:
    """Every finding, in order. `only`: these invariants, all where it is empty."""
    scene, found = Scene(store, views), []
    with answers.opened(store, views, ledger_files()) as of_answers:
        for invariant, law, check in [*checks(scene), *of_answers]:
            if not only or invariant in only:
                say(f"{invariant}: {law}")
                found.append(looked(invariant, law, check))
    return found


def exit_code(found: list[Finding]) -> int:
    """1 where a law is broken, else 2 where one could not be looked at."""
    states = {one.state for one in found}
    return 1 if State.BREACH in states else 2 if State.UNABLE in states or not found else 0
