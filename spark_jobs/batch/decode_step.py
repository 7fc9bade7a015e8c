"""`decode`: make facts, quarantined records or counted duplicates of the master log's new records.

master.log (previous cut, cut], the lsns of days to build again, and those of records that newer schemas or revisions
have read otherwise -> facts.<type>, master.quarantine, master.duplicates.
Each table replaces its rows of those lsns, so a retry, or a repetition, leaves what the first try would have left.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow.dataset as ds
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.batch import decode_job, identity_index, read_again, replacing
from spark_jobs.batch.build_tasks import days_together
from spark_jobs.batch.decode_job import DUPLICATE, QUARANTINED, JudgedBy, fact_columns
from spark_jobs.batch.plan import FROM_FACTS, LSNS
from spark_jobs.batch.progress import Say, fenced, watched
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine.record_outcomes import RECORD_OUTCOME
from spark_jobs.ledger.schema import Run
from spark_jobs.ledger.store import Store
from spark_jobs.settings import settings
from spark_jobs.storage import coverage, data_files, ddl, duckdb_reader, log_reader, tables, task_files
from spark_jobs.storage.data_files import Committing, Written, files_within
from spark_jobs.storage.fact_slices import in_days
from spark_jobs.storage.lsn_ranges import Range, Scope, covering, joined, scope
from spark_jobs.storage.task_files import Files

AGAIN = "decoded_again"
"""The key in a run's summary for ranges of older lsns."""
DONE_UP_TO = "decoded_again_up_to"
"""Likewise, for the last of them that is done."""
COUNTED = ("facts", "quarantined", "duplicates")


@dataclass(frozen=True)
class Tables:
    """The tables as they were when their old files were looked up; a commit fails where somebody else has made one."""

    read: Mapping[str, DeltaTable]
    committing: Committing

    def replace(self, table: str, removed: Iterable[str], files: Sequence[Written], losing: Collection[str]) -> None:
        """Put the files in the place of those removed.

        What was made, and written again with fewer rows (`losing`), is discarded.
        """
        paths = [address.removeprefix(f"{tables.path(table)}/") for address in removed]
        again = [file for file in files if file.address not in losing]
        if paths or again:
            data_files.swap(self.read[table], paths, again, self.committing)
        data_files.discard(file for file in files if file.address in losing)


def decode(spark: SparkSession, store: Store, run: Run, say: Say) -> None:
    """Bring the facts to the run's cut and decode its days again; do nothing if the run has done so."""
    if run.step != "plan":
        return
    create_tables()
    history = log_reader.read_schema_history()
    todo = scope(run.previous_cut, run.cut, _again(store, run, history, say))
    with store.writing(run.run_id) as held:
        run = store.active_run(run.run_id)
        if run.step != "plan":  # another process has done it meanwhile
            return
        counts = Counter({name: run.summary[name] for name in COUNTED if name in run.summary})
        for portion in _portions(run, todo):
            counts.update(_decode(spark, store, run.run_id, portion, (history, run.cut), fenced(held), say))
            if portion.later:
                store.progress(run.run_id, "plan", **{DONE_UP_TO: portion.again[-1][1]}, **counts)
        store.progress(run.run_id, "decode", **counts)


def _portions(run: Run, todo: Scope) -> Iterator[Scope]:
    """What is to be decoded at a time, without what an earlier try has done. What is new comes last."""
    left = [(max(first, run.summary.get(DONE_UP_TO, 0) + 1), last) for first, last in todo.again]
    todo = replace(todo, again=tuple((first, last) for first, last in left if first <= last))
    return iter(()) if todo.is_empty else todo.portions(settings().decode_again_records, coverage.counted)


def create_tables() -> None:
    """Create every table of this step, with a column for every field of its contract."""
    # What finds the files of a day, a time or a range of lsns; statistics of other columns cost time with every row.
    statistics = ddl.looked_up_by("lsn", "day", "occurred_at")
    for contract in project_contracts():
        ddl.create(tables.facts(contract.event_type), fact_columns(contract), properties=statistics)
    ddl.create(tables.QUARANTINE, QUARANTINED)
    ddl.create(tables.DUPLICATES, DUPLICATE)
    identity_index.create()


def _again(store: Store, run: Run, history: SchemaHistory, say: Say) -> list[Range]:
    """Older lsns to decode again: of the run's days, and of records that are read otherwise now.

    Kept in the ledger until a publication: a try that died may have emptied quarantine, or replaced some facts.
    """
    otherwise = read_again.lsns(history, run.previous_cut, run.cut)
    if otherwise:
        lsns = sum(last - first + 1 for first, last in otherwise)
        say(f"newer schemas or revisions change what older records mean: {lsns:,} lsns are decoded again")
    begun = chain.from_iterable(earlier.summary.get(AGAIN, ()) for earlier in store.runs_since_base(run.run_id))
    days = () if FROM_FACTS in run.summary else run.days
    asked = chain(begun, run.summary.get(LSNS, ()))
    again = joined([*otherwise, *_lsns_of(days, run.previous_cut), *((first, last) for first, last in asked)])
    store.progress(run.run_id, run.step, **{AGAIN: again})
    return again


def _lsns_of(days: Sequence[str], cut: int) -> list[Range]:
    """Ranges that cover the lsns with a fact of those days, or landed on them."""
    if not days:
        return []
    facts = {name: tables.facts(name) for name in _types_with_facts()}
    sources = [f'SELECT lsn FROM "{event_type}" WHERE {in_days(days)}' for event_type in facts]
    sources.append(f"SELECT lsn FROM log WHERE {in_days(days, 'landed_on')} AND lsn <= {int(cut)}")
    with duckdb_reader.connect({**facts, "log": tables.MASTER_LOG}) as con:
        return covering(con, " UNION ALL ".join(sources))


def _decode(
    spark: SparkSession, store: Store, run_id: str, todo: Scope, judged_by: JudgedBy, committing: Committing, say: Say
) -> dict[str, int]:
    with task_files.scratch(f"decode.{run_id}") as folder:
        with watched(spark, store, run_id, "decode", say):
            made = decode_job.decoded(spark, todo, judged_by, folder, committing)
        read = {table: DeltaTable(tables.path(table)) for table in tables.decoded(project_contracts().event_types)}
        old = {table: _overlapping(table, of, todo) for table, of in read.items()}
        changed = dict(store.active_run(run_id).summary.get("changed_days", {}))
        if todo.again:
            changed = days_together([changed, replacing.changed_days(spark, old, _addresses(made), todo)])
            store.progress(run_id, "plan", changed_days=changed)  # a retry would not see the difference any more
        again = {tables.QUARANTINE, tables.DUPLICATES, *map(tables.facts, changed)} if todo.again else set()
        return _write(spark, todo, made, old, again, Tables(read, committing), say)


def _addresses(files: Files) -> dict[str, list[str]]:
    return {table: [file.address for _, file in of] for table, of in files.items()}


def _overlapping(table: str, read: DeltaTable, todo: Scope) -> list[str]:
    """The table's files that may have rows of the lsns to do, or of newer ones, which a try that died has left."""
    files = files_within(read, {"lsn": [*todo.again, (todo.previous + 1, None)]})
    return [f"{tables.path(table)}/{path}" for path in files["path"].to_pylist()]


def _types_with_facts() -> list[str]:
    """The event types that have facts: each table in a query costs its planning, empty or not."""
    return [name for name in project_contracts().event_types if duckdb_reader.row_count(tables.facts(name))]


def _write(
    spark: SparkSession,
    todo: Scope,
    made: Files,
    old: dict[str, list[str]],
    again: set[str],
    read: Tables,
    say: Say,
) -> dict[str, int]:
    """Put the made rows in the place of old ones: of the new lsns, and in the tables `again` of those decoded again.

    Where there are no old rows, as in every first try of new lsns, the files become part of the table as they are.
    """
    keep, counts = dict[str, tuple[str, ds.Expression]](), dict[str, int]()
    for table in tables.decoded(project_contracts().event_types):
        counts[table] = sum(count for count, _ in made.get(table, ()))
        replaced = todo.expression(only_new=table not in again)
        keep |= dict.fromkeys(old[table], (table, ~replaced))
        if todo.again and table not in again:
            keep |= {file.address: (table, replaced) for _, file in made.get(table, ())}
    rest, losing = replacing.only(spark, keep)
    for table in tables.decoded(project_contracts().event_types):
        files = [file for _, file in (*rest.get(table, ()), *made.get(table, ()))]
        read.replace(table, [address for address in old[table] if address in losing], files, losing)
    quarantined, duplicates = counts.pop(tables.QUARANTINE), counts.pop(tables.DUPLICATES)
    facts = sum(counts.values()) - counts[tables.facts(RECORD_OUTCOME)]
    say(f"decoded {todo.sql()}: {facts:,} facts, {quarantined:,} quarantined, {duplicates:,} duplicates")
    return dict(zip(COUNTED, (facts, quarantined, duplicates), strict=True))
