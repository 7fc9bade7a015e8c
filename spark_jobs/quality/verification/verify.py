"""`tidemark verify`: the invariants, looked at on the running platform.

Kafka, the tables' files, the ledger, the producer ledger, the oracle, a pin over Thrift -> one Finding per law.
No JVM is started. Each check names what it compared and the first breaches; what it cannot look at, it says.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random

import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.ledger.store import Store
from spark_jobs.quality import recompute
from spark_jobs.quality.verification import answers, completeness, continuity, kafka_gaps, recompute_checks, scope
from spark_jobs.quality.verification.expected import ledger_files
from spark_jobs.quality.verification.findings import Absent, Check, Finding, Law, State
from spark_jobs.quality.verification.scene import Scene
from spark_jobs.quality.verification.time_limit import TimeLimit
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables

SETTLED = (State.HOLDS, State.BREACH, State.ABSENT)
"""Findings that are not made again where a look goes on that was cut off."""


def checks(scene: Scene) -> Iterator[Check]:
    """Every check that needs the log, Kafka or the tables; those of served answers are in `answers`."""
    cuts = {view.column: scene.sources[view.id].cut for view in scene.views if view.id in scene.sources}
    yield completeness.OFFSETS, lambda: kafka_gaps.offsets_are_in_the_log_once(scene.con)
    yield completeness.ROWS, lambda: _tables_add_up(scene)
    yield (
        completeness.ENDS,
        lambda: completeness.records_are_accounted_for(
            scene.con, scene.built_cut, scene.ends, scene.scope.up_to(scene.cut)
        ),
    )
    yield completeness.ONCE, lambda: _events_count_once(scene)
    yield continuity.LSNS, lambda: continuity.lsns_are_contiguous(scene.con)
    yield continuity.RANGES, lambda: continuity.offsets_chain(scene.con)
    yield continuity.PLACES, lambda: continuity.records_lie_in_their_range(scene.con)
    yield continuity.COVERAGE, lambda: continuity.views_are_covered(scene.con, cuts, scene.head)
    yield from _of_facts(scene)
    yield completeness.BYTES, lambda: completeness.bytes_are_the_producers(scene.con, ledger_files(), scene.scope)


def _tables_add_up(scene: Scene) -> Finding:
    cut = scene.built_cut
    query = f"SELECT sum(batch.records) + count(*), sum(batch.records) FILTER (lsn <= {cut:d}) FROM log WHERE kind <> ?"
    [(logged, landed)] = scene.con.execute(query, [row_types.RECORD_ROW]).fetchall()
    types = [contract.event_type for contract in project_contracts() if not contract.is_outcome]
    derived = (table for table in tables.decoded(types) if duckdb_reader.exists(table))
    built = sum(duckdb_reader.dataset(table).count_rows(filter=ds.field("lsn") <= cut) for table in derived)
    counted = {"rows of the log": int(logged), "facts, quarantined records and duplicates up to the cut": int(landed)}
    return completeness.tables_add_up(counted, dict(zip(counted, (scene.log.count_rows(), built), strict=True)))


def _events_count_once(scene: Scene) -> Finding:
    rows = sum(duckdb_reader.row_count(tables.facts(event_type)) for event_type in scene.facts)
    one_of = scene.scope.one_of(rows)
    return completeness.events_count_once(scene.con, scene.built_cut, scene.facts, one_of, scene.seed or 0)


def _of_facts(scene: Scene) -> Iterator[Check]:
    """The facts, by portions of the log where it is large."""
    try:
        large = [*scope.portions(scene.scope.up_to(scene.cut))] if scene.scope.is_large else None
    except duckdb_reader.NoTable:
        large = None
    if large is None:
        yield recompute_checks.FACTS, lambda: recompute_checks.facts_stand(scene.decoded, scene.built_cut)
    elif not large:
        yield recompute_checks.FACTS, _none_built
    for first, last in large or ():
        law = recompute_checks.law_of_lsns(first, last)
        yield law, partial(_lsns_stand, scene, first, last, law)


def of_builds(scene: Scene) -> Iterator[Check]:
    """I7 of what is built of the facts."""
    for view in scene.views:
        yield recompute_checks.law_of(view), partial(_view_stands, scene, view)


def _none_built() -> Finding:
    raise Absent("none of the sample's records is built yet")


def _lsns_stand(scene: Scene, first: int, last: int, law: Law) -> Finding:
    some = scene.scope.some_of(first, last)
    con = recompute.later(last, above=first - 1, cut=scene.read_at, where=some.expression)
    return recompute_checks.facts_stand(con, last, first - 1, law, some)


def _view_stands(scene: Scene, view: View) -> Finding:
    source = scene.sources.get(view.id)
    if source is None or source.batch_version is None:
        raise Absent("not built yet")
    if source.cut != scene.cut:
        raise Absent(f"it is built at cut {source.cut}, what readers see at {scene.cut}")
    where = scene.scope.condition(view, source, Dialect.DUCKDB, scope.stored_names(view))
    return recompute_checks.view_stands(scene.recomputed, scene.built, view, where)


def _in_turn(of_views: list[Check], seed: int | None) -> list[Check]:
    """In their order; in a sample, whose time may be over before the last one, each time in another."""
    return of_views if seed is None else Random(seed).sample(of_views, len(of_views))


@dataclass
class Progress:
    """How far a verification is: told before each check, and each finding kept as it is made."""

    tell: Callable[[int, int, Law], None]
    keep: Callable[[Finding], None]
    known: dict[str, Finding]
    """Law -> what an earlier part of this look has found."""


def verify(
    store: Store,
    views: Views,
    progress: Progress,
    seed: int | None,
    limit: TimeLimit,
    only: frozenset[str] = frozenset(),
) -> list[Finding]:
    """Every finding, in order. seed: of a sample; None: everything. `only`: these invariants, all where it is empty."""
    findings, scene = [], Scene(store, views, seed)
    with answers.opened(store, views, lambda: scene.scope, seed) as of_answers:
        of_log, of_views = [*checks(scene)], [*_in_turn(of_answers, seed), *_in_turn([*of_builds(scene)], seed)]
        every = [(law, check, limit.half) for law, check in of_log] + [(*check, limit) for check in of_views]
        every = [(law, check, until) for law, check, until in every if not only or law.invariant in only]
        for number, (law, check, until) in enumerate(every):
            progress.tell(number, len(every), law)
            finding = progress.known.get(law.key)
            if finding is None or finding.state not in SETTLED:
                finding = until.looked(law, check)
                progress.keep(finding)
            findings.append(finding)
    return findings


def exit_code(findings: list[Finding]) -> int:
    """1 where a law is broken, else 2 where one could not be looked at, or none was."""
    states = {finding.state for finding in findings}
    return 1 if State.BREACH in states else 2 if State.UNABLE in states or not states - {State.SKIPPED} else 0
