"""`decode`: make facts, quarantined records or counted duplicates of the master log's new records.

master.log (previous cut, cut], the lsns of days to build again, and those of records that a newer schema takes out of
quarantine -> facts.<type>, master.quarantine, master.duplicates.
Each table replaces its rows of those lsns, so a retry, or a repetition, leaves what the first try would have left.
"""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.batch import decode_job, decode_tables, quarantine_release
from spark_jobs.batch.decode_job import QUARANTINED, DecodedFiles, JudgedBy, fact_columns
from spark_jobs.batch.decode_tables import DUPLICATE, Output
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.storage import duckdb_reader, log_reader, spark_reader, tables
from spark_jobs.storage.log_reader import LogRecords
from spark_jobs.storage.lsn_ranges import Scope, ranges_of, scope
from spark_jobs.storage.spark_reader import in_days

Say = Callable[[str], None]

RELEASED = "released"
"""The key in a run's summary for ranges of older lsns."""


def decode(spark: SparkSession, store: Store, run: Run, say: Say) -> None:
    """Bring the facts to the run's cut and decode its days again; do nothing if the run has done so."""
    if run.step != "plan":
        return
    decode_tables.create()
    history = log_reader.read_schema_history()
    back = _released(store, run, history, say)
    todo = scope(run.previous_cut, run.cut, [*_lsns_of(run.days, run.previous_cut), *back])
    summary = {} if todo.is_empty else _decode(spark, store, run, todo, (history, run.cut), say)
    store.progress(run.run_id, "decode", **summary)


def _released(store: Store, run: Run, history: SchemaHistory, say: Say) -> list[int]:
    """Lsns with records that newer schemas accept. Kept in the ledger: a try that died may have emptied quarantine."""
    lsns = set(quarantine_release.lsns(history, run.previous_cut, run.cut))
    if lsns:
        say(f"newer schemas accept quarantined records: {len(lsns):,} older lsns are decoded again")
    for earlier in store.runs_since_base(run.run_id):
        lsns |= {lsn for first, last in earlier.summary.get(RELEASED, ()) for lsn in range(first, last + 1)}
    store.progress(run.run_id, run.step, **{RELEASED: ranges_of(lsns)})
    return sorted(lsns)


def _lsns_of(days: Sequence[str], cut: int) -> list[int]:
    """Lsns that hold a fact of those days, or were landed on them."""
    if not days:
        return []
    facts = {name: tables.facts(name) for name in _types_with_facts()}
    sources = [f'SELECT lsn FROM "{event_type}" WHERE {in_days(days)}' for event_type in facts]
    sources.append(f"SELECT lsn FROM log WHERE {in_days(days, 'landed_on')} AND lsn <= {int(cut)}")
    with duckdb_reader.connect({**facts, "log": tables.MASTER_LOG}) as con:
        return [lsn for (lsn,) in con.execute(f"SELECT DISTINCT lsn FROM ({' UNION ALL '.join(sources)})").fetchall()]


def _decode(spark: SparkSession, store: Store, run: Run, todo: Scope, judged_by: JudgedBy, say: Say) -> dict[str, Any]:
    with decode_job.scratch(run.run_id) as folder:
        decoded = decode_job.decoded(LogRecords(spark, tuple(todo.ranges())), judged_by, _history(spark, todo), folder)
        changed = dict(run.summary.get("changed_days", {}))
        if todo.again:
            for event_type, days in _changed_days(spark, todo, decoded).items():
                changed[event_type] = sorted({*changed.get(event_type, ()), *days})
            store.progress(run.run_id, "plan", changed_days=changed)  # a retry would not see the difference any more
        return _write(todo, decoded, changed.keys(), say)


def _types_with_facts() -> list[str]:
    """The event types that have facts: each table in a query costs its planning, empty or not."""
    return [name for name in project_contracts().event_types if duckdb_reader.row_count(tables.facts(name))]


def _history(spark: SparkSession, todo: Scope) -> DataFrame | None:
    """The identities of all earlier facts, in one relation: a join per event type took most of a decode's time."""
    types = [name for name in _types_with_facts() if name != record_outcomes.RECORD_OUTCOME] if todo.previous else []
    return reduce(DataFrame.union, [_identities(spark, name, todo) for name in types]) if types else None


def _identities(spark: SparkSession, event_type: str, todo: Scope) -> DataFrame:
    return spark_reader.rows(spark, tables.facts(event_type)).where(todo.sql_history()).select("identity")


def _write(todo: Scope, decoded: DecodedFiles, changed: Collection[str], say: Say) -> dict[str, Any]:
    known, again = project_contracts(), bool(todo.again)
    wanted = [(tables.facts(c.event_type), fact_columns(c), c.event_type in changed) for c in known]
    wanted.append((tables.QUARANTINE, QUARANTINED, again))
    outputs = [
        Output(table, decoded.rows(table, columns), decoded.counts[table] > 0, also_again, decoded.files.get(table, ()))
        for table, columns, also_again in wanted
    ]
    outputs.append(Output(tables.DUPLICATES, decoded.losers.select(DUPLICATE.names), decoded.duplicates > 0, again))
    with ThreadPoolExecutor(settings().cores) as pool:
        list(pool.map(lambda output: decode_tables.replace(output, todo), outputs))
    quarantined = decoded.counts[tables.QUARANTINE]
    facts = sum(decoded.counts.values()) - quarantined - decoded.counts[tables.facts(record_outcomes.RECORD_OUTCOME)]
    say(f"decoded {todo.sql()}: {facts:,} facts, {quarantined:,} quarantined, {decoded.duplicates:,} duplicates")
    return {"facts": facts, "quarantined": quarantined, "duplicates": decoded.duplicates}


def _changed_days(spark: SparkSession, todo: Scope, decoded: DecodedFiles) -> dict[str, list[str]]:
    """Event type -> days whose facts changed when lsns were decoded again (I7: none, as a rule)."""
    again = todo.sql_again()
    before = _marks(
        [(t, spark_reader.rows(spark, tables.facts(t)).where(again)) for t in project_contracts().event_types]
    )
    after = _marks(
        [
            (contract.event_type, decoded.rows(tables.facts(contract.event_type), fact_columns(contract)).where(again))
            for contract in project_contracts()
        ]
    )
    changed: dict[str, list[str]] = {}
    for event_type, day in sorted(key for key in before | after if before.get(key) != after.get(key)):
        changed.setdefault(event_type, []).append(day)
    return changed


def _marks(relations: Sequence[tuple[str, DataFrame]]) -> dict[tuple[str, str], tuple[int, int]]:
    """(event type, day) -> count and hash of the facts; the hash ignores their order."""
    parts = [
        facts.select(F.lit(event_type).alias("t"), "day", F.xxhash64(*sorted(facts.columns)).alias("hash"))
        for event_type, facts in relations
    ]
    rows = reduce(DataFrame.unionByName, parts).groupBy("t", "day").agg(F.count("*"), F.bit_xor("hash"))
    return {(t, day.isoformat()): (count, mark) for t, day, count, mark in rows.collect()}
