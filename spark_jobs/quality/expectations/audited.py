"""What the gate audits of a run: its new facts, its completeness, its batch tables, each with its suite.

run, what it built -> (Suite, the Relation at the exact version) one by one. What is only counted comes from the files.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.batch import identity_index
from spark_jobs.batch.build_units import keyed_files
from spark_jobs.batch.decode_step import AGAIN
from spark_jobs.batch.key_ranges import apart
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import View
from spark_jobs.engine import partials
from spark_jobs.expressions.dialect import Dialect, quote
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.source import UNBUILT, Source
from spark_jobs.quality.expectations import suites
from spark_jobs.quality.expectations.relation import Counted, Relation, Stored
from spark_jobs.quality.expectations.suites import Suite
from spark_jobs.registry.views import Views
from spark_jobs.storage import duckdb_reader, tables
from spark_jobs.storage.fact_slices import in_days
from spark_jobs.storage.file_portions import in_portions
from spark_jobs.storage.lsn_ranges import Range, joined, predicate, within

DUCKDB = Dialect.DUCKDB
FEW = 1_000
"""Facts of an event type, at first."""
MANY_IDENTITIES = 5_000_000
"""Facts of all history, above which a run is held to a part of their identities: they are hashes, read one and all."""


def audited(
    run: Run,
    views: Views,
    built: Mapping[str, Source],
    old: Mapping[str, Source],
    after: int,
    days: list[str],
    *,
    whole: bool = False,
) -> Iterator[tuple[Suite, Relation]]:
    """Every suite of a run, and the relation that it checks.

    `after`: the published cut; `days`: those whose facts were decoded again, as the ranges of lsns in the run's summary
    were, of which every record is counted once more. What was audited before is left out: a
    view whose version stays, an event type without new facts (the suite of completeness finds missing ones); and unless
    the `whole` is wanted, files that the published version has too, but for a sample.
    """
    again = ((first, last) for first, last in run.summary.get(AGAIN, ()))
    decoded = joined([*again, *([(after + 1, run.cut)] if run.cut > after else [])])
    yield suites.of_completeness(), Counted(partial(_completeness, decoded))
    yield suites.of_identities(), Counted(partial(_repeated, decoded, None if whole else run.cut))
    for contract in project_contracts():
        if _has_new(tables.facts(contract.event_type), after, days):
            suite = suites.of_facts(contract, run.cut, datetime.now(UTC))
            yield suite, Stored(suite.table, where=f"lsn > {after:d} OR {in_days(days)}")
    new = [view for view in views if built[view.id].versions != old.get(view.id, UNBUILT).versions]
    full = _with_facts(new, run.cut)
    for view in new:
        made = suites.of_view(view, must_have_rows=view.id in full)
        before = old.get(view.id, UNBUILT).versions or (None,) * len(made)
        for suite, version, base in zip(made, built[view.id].versions, before, strict=True):
            some = None if whole or base is None else _changed(suite, view.ordered_by, version, base)
            yield suite, Stored(suite.table, version, files=some)


def _changed(suite: Suite, keys: tuple[str, ...], version: int, base: int) -> tuple[str, ...] | None:
    """The files that version `base` does not have, with what must be judged together with them, and one of the others.

    None where that is every file, or none is new: a table without rows is no answer.
    """
    if suite.together is None:
        return None
    known = {file.address for file in keyed_files(suite.table, base, keys)}
    files = keyed_files(suite.table, version, keys)
    groups = [group for _, group in apart(keys, files)] if suite.together else [[file] for file in files]
    new = [group for group in groups if any(file.address not in known for file in group)]
    others = [file for group in groups if group not in new for file in group]
    if not new or not others:
        return None
    sample = others[version % len(others)]
    return (*(file.address for group in new for file in group), sample.address)


def _has_new(table: str, after: int, days: list[str]) -> bool:
    """Whether the table has rows that no published run has audited. One that is missing is not passed over."""
    if not duckdb_reader.exists(table):
        return True
    of = (ds.field("lsn") > after) | ds.field("day").isin(pa.array(days).cast(pa.date32()))
    return bool(duckdb_reader.dataset(table).head(1, columns=["lsn"], filter=of).num_rows)


def _facts_of_records() -> dict[str, str]:
    """Event type -> the table of its facts."""
    return {one.event_type: tables.facts(one.event_type) for one in project_contracts() if not one.is_outcome}


def _completeness(decoded: Sequence[Range]) -> pa.Table:
    """Per topic: how many records landed at these lsns, and what became of them."""
    lsns = f"({predicate(decoded)})"
    ends = [*_facts_of_records().values(), tables.QUARANTINE, tables.DUPLICATES]
    parts = [f"SELECT topic, TRUE AS landed FROM log WHERE kind = 'record' AND {lsns}"]
    parts += [f"SELECT topic, FALSE AS landed FROM {quote(table, DUCKDB)} WHERE {lsns}" for table in ends]
    counts = "count_if(landed) AS records, count_if(NOT landed) AS accounted_for"
    con = duckdb_reader.connect({"log": tables.MASTER_LOG, **{table: table for table in ends}})
    return con.sql(f"SELECT topic, {counts} FROM ({' UNION ALL '.join(parts)}) GROUP BY topic").to_arrow_table()


def _repeated(decoded: Sequence[Range], seed: int | None) -> pa.Table:
    """Per event type: how many facts of these lsns have the identity of a fact of another lsn.

    With a seed, of an index of more than MANY_IDENTITIES one bucket is looked at, another by the next seed.
    """
    indexed = duckdb_reader.exists(tables.IDENTITIES)
    known = duckdb_reader.dataset(tables.IDENTITIES) if indexed else ds.dataset(identity_index.INDEX.empty_table())
    some = ds.scalar(True)
    if seed is not None and known.count_rows() > MANY_IDENTITIES:
        some = identity_index.of_bucket(seed % identity_index.BUCKETS)
    con = duckdb_reader.connect({})
    con.execute("CREATE TEMP TABLE fresh (event_type VARCHAR, identity BLOB, lsn BIGINT)")
    for event_type, table in _facts_of_records().items():
        if duckdb_reader.exists(table):
            con.register("rows", duckdb_reader.dataset(table).filter(within(decoded) & some))
            con.execute("INSERT INTO fresh SELECT ?, identity, lsn FROM rows", [event_type])
    con.register("known", known.filter(some))
    return con.sql("""
        WITH alike AS MATERIALIZED (SELECT identity, lsn FROM known SEMI JOIN fresh USING (identity))
        SELECT event_type, count(*) AS repeated FROM fresh JOIN alike USING (identity) WHERE alike.lsn <> fresh.lsn
        GROUP BY event_type""").to_arrow_table()


def _with_facts(views: Collection[View], cut: int) -> set[str]:
    """Ids of the views that have at least one fact to show; most have one among the first facts that are read."""
    until = ds.field("lsn") <= cut
    types = {event_type for view in views for event_type in view.event_types}
    stored = {event_type: duckdb_reader.dataset(tables.facts(event_type)) for event_type in types}
    first = {name: next(in_portions(facts, FEW, until), facts.schema.empty_table()) for name, facts in stored.items()}
    found = _showing(views, {name: ds.dataset(pa.table(facts)) for name, facts in first.items()})
    others = [view for view in views if view.id not in found]
    return found | _showing(others, {name: facts.filter(until) for name, facts in stored.items()})


def _showing(views: Collection[View], facts_of: Mapping[str, ds.Dataset]) -> set[str]:
    """Ids of the views that show one of these facts."""
    counted = {view.id: partials.counted(view, {name: quote(name, DUCKDB) for name in facts_of}) for view in views}
    con = duckdb_reader.connect(facts_of)
    return {view_id for view_id, facts in counted.items() if con.execute(f"FROM ({facts}) LIMIT 1").fetchall()}
