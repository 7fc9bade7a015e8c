"""`decode`: make facts, quarantined records or counted duplicates of the master log's new records.

master.log (previous cut, cut], the lsns of days to build again, and those of records that a newer schema takes out of
quarantine -> facts.<type>, master.quarantine, master.duplicates.
Each table replaces its rows of those lsns, so a retry, or a repetition, leaves what the first try would have left.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.batch import decode_job, quarantine_release
from spark_jobs.batch.build_tasks import days_together
from spark_jobs.batch.decode_job import DUPLICATE, QUARANTINED, Files, JudgedBy, fact_columns
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine.record_outcomes import RECORD_OUTCOME
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.storage import data_files, ddl, duckdb_reader, log_reader, spark_reader, spark_writer, tables
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
    create_tables()
    history = log_reader.read_schema_history()
    back = _released(store, run, history, say)
    todo = scope(run.previous_cut, run.cut, [*_lsns_of(run.days, run.previous_cut), *back])
    summary = {} if todo.is_empty else _decode(spark, store, run, todo, (history, run.cut), say)
    store.progress(run.run_id, "decode", **summary)


def create_tables() -> None:
    """Create every table of this step, with a column for every field of its contract."""
    # What finds the files of a day, a time or a range of lsns; statistics of other columns cost time with every row.
    statistics = ddl.looked_up_by("lsn", "day", "occurred_at")
    for contract in project_contracts():
        ddl.create(tables.facts(contract.event_type), fact_columns(contract), properties=statistics)
    ddl.create(tables.QUARANTINE, QUARANTINED)
    ddl.create(tables.DUPLICATES, DUPLICATE)


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
            changed = days_together([changed, _changed_days(spark, todo, decoded)])
            store.progress(run.run_id, "plan", changed_days=changed)  # a retry would not see the difference any more
        return _write(spark, todo, decoded, changed.keys(), say)


def _types_with_facts() -> list[str]:
    """The event types that have facts: each table in a query costs its planning, empty or not."""
    return [name for name in project_contracts().event_types if duckdb_reader.row_count(tables.facts(name))]


def _history(spark: SparkSession, todo: Scope) -> DataFrame | None:
    """The identities of all earlier facts, in one relation: a join per event type took most of a decode's time."""
    types = [name for name in _types_with_facts() if name != RECORD_OUTCOME] if todo.previous else []
    earlier = [spark_reader.rows(spark, tables.facts(name)).where(todo.sql_history()) for name in types]
    return reduce(DataFrame.union, [facts.select("identity") for facts in earlier]) if earlier else None


def _write(spark: SparkSession, todo: Scope, decoded: Files, changed: Collection[str], say: Say) -> dict[str, Any]:
    again = bool(todo.again)
    outputs = [(tables.facts(c.event_type), fact_columns(c), c.event_type in changed) for c in project_contracts()]
    outputs += [(tables.QUARANTINE, QUARANTINED, again), (tables.DUPLICATES, DUPLICATE, again)]
    with ThreadPoolExecutor(settings().cores) as pool:
        replaced = [pool.submit(replace, *output, spark, decoded, todo) for output in outputs]
    for future in replaced:
        future.result()
    counts = {table: sum(count for count, _ in decoded.get(table, ())) for table, *_ in outputs}
    quarantined, duplicates = counts.pop(tables.QUARANTINE), counts.pop(tables.DUPLICATES)
    facts = sum(counts.values()) - counts[tables.facts(RECORD_OUTCOME)]
    say(f"decoded {todo.sql()}: {facts:,} facts, {quarantined:,} quarantined, {duplicates:,} duplicates")
    return {"facts": facts, "quarantined": quarantined, "duplicates": duplicates}


def _rows(spark: SparkSession, decoded: Files, table: str, columns: pa.Schema) -> DataFrame:
    return decode_job.rows(spark, [file.address for _, file in decoded.get(table, ())], columns)


def replace(table: str, columns: pa.Schema, also_again: bool, spark: SparkSession, decoded: Files, todo: Scope) -> None:
    """Replace the table's rows of the new lsns, and if `also_again` of those decoded again, by those of its files.

    Where the table has no such rows, as in every first try of new lsns, the files become part of it as they are.
    """
    files, rows = [file for _, file in decoded.get(table, ())], _rows(spark, decoded, table, columns)
    where = todo.sql(only_new=not also_again)
    if also_again or _newest_lsn(table) > todo.previous:
        spark_writer.replace_where(rows.where(where), table, where)
    elif files and not todo.again:
        data_files.commit(tables.path(table), files, {"cut": str(todo.cut)})
        return
    elif files:
        spark_writer.append(rows.where(where), table)
    data_files.discard(files)


def _newest_lsn(table: str) -> int:
    """The newest lsn, from the table's file statistics; 2**63 - 1 if a file has none."""
    files = pa.table(DeltaTable(tables.path(table)).get_add_actions(flatten=True))
    known = "max.lsn" in files.column_names
    newest: list[int | None] = files["max.lsn"].to_pylist() if known else [None] * files.num_rows
    return max((2**63 - 1 if lsn is None else lsn for lsn in newest), default=0)


def _changed_days(spark: SparkSession, todo: Scope, decoded: Files) -> dict[str, list[str]]:
    """Event type -> days whose facts changed when lsns were decoded again (I7: none, as a rule)."""
    contracts = [contract for contract in project_contracts() if decoded.get(tables.facts(contract.event_type))]
    old = {name: spark_reader.rows(spark, tables.facts(name)) for name in _types_with_facts()}
    new = {c.event_type: _rows(spark, decoded, tables.facts(c.event_type), fact_columns(c)) for c in contracts}
    before, after = (_marks(facts_of, todo.sql_again()) for facts_of in (old, new))
    differing = sorted(key for key in before | after if before.get(key) != after.get(key))
    return days_together({event_type: [day]} for event_type, day in differing)


def _marks(facts_of: Mapping[str, DataFrame], again: str) -> dict[tuple[str, str], tuple[int, int]]:
    """(event type, day) -> count and hash of the facts of the lsns `again`; the hash ignores their order."""
    if not facts_of:
        return {}
    parts = [
        facts.where(again).select(F.lit(name).alias("t"), "day", F.xxhash64(*sorted(facts.columns)).alias("hash"))
        for name, facts in facts_of.items()
    ]
    rows = reduce(DataFrame.unionByName, parts).groupBy("t", "day").agg(F.count("*"), F.bit_xor("hash"))
    return {(t, day.isoformat()): (count, mark) for t, day, count, mark in rows.collect()}
