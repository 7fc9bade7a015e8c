"""I7: a rebuild at the same cut changes nothing.

rebuild (DuckDB, from the log) | what the batch layer stored -> Findings: facts, rejects, duplicates; then every view.
"""

from collections.abc import Mapping

import duckdb

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import SequenceView, View
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.quality import recompute
from spark_jobs.quality.verification.findings import Finding, finding
from spark_jobs.serving.compare import Shape, compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import duckdb_reader, log_reader, tables

D = Dialect.DUCKDB
PLACE = ("lsn", "topic", "partition", "offset")
FACTS = "facts are what the log gives"
NAMES = ("stored", "rebuilt")


def facts_stand(con: duckdb.DuckDBPyConnection, cut: int) -> Finding:
    """Facts, quarantined records and duplicates at or below the cut are those that the log gives."""
    log = recompute.records(cut)
    recompute.facts(con, log, log_reader.read_schema_history(), cut)
    relations = {
        tables.facts(c.event_type): (f"facts_{c.event_type}", c.fact_schema.names) for c in project_contracts()
    }
    relations[tables.QUARANTINE] = ("rejects", [*PLACE, "value", "reason", "field"])
    relations[tables.DUPLICATES] = ("duplicates", [*PLACE, "event_type", "identity"])
    said: list[str] = []
    checked = breaches = 0
    for table, (relation, columns) in relations.items():
        stored = f"SELECT {listed(columns, D)} FROM {relation} WHERE false"  # of a type that is newer than the cut
        if duckdb_reader.exists(table):
            con.register("stored_rows", duckdb_reader.dataset(table))
            stored = f"SELECT {listed(columns, D)} FROM stored_rows WHERE lsn <= {cut:d}"
        shape = Shape(PLACE, [name for name in columns if name not in PLACE])
        compared = compare(con, stored, f"SELECT * FROM {relation}", shape)
        checked, breaches = checked + compared.rows, breaches + compared.differing
        said += [f"{table}: {row}" for row in compared.first(NAMES)]
    return finding("I7", FACTS, checked, "rows", said, count=breaches)


def view_stands(con: duckdb.DuckDBPyConnection, stored: LocalAnswers, view: View) -> Finding:
    """The view's batch tables are those that the facts give. `con`: with the facts rebuilt; `stored`: head = cut."""
    law = f"{view.id} is what its facts give"
    if isinstance(view, SequenceView):
        return _sequence_stands(con, stored, view, law)
    con.register("stored_rows", stored.con.sql(stored.own(view)).to_arrow_table())
    shape = shape_of(view, tolerance=1e-9)
    compared = compare(con, "FROM stored_rows", recompute.answer(con, view), shape)
    return finding("I7", law, compared.rows, "rows", compared.first(NAMES), count=compared.differing)


def _sequence_stands(con: duckdb.DuckDBPyConnection, stored: LocalAnswers, view: SequenceView, law: str) -> Finding:
    horizon = stored.sources[view.id].horizon
    late = "" if horizon is None else f" WHERE stretch_end >= {since_epoch(horizon)}"
    rows, results = recompute.stored(view)
    kinds: Mapping[str, list[str]] = {"row": ["lsn", *view.row_kinds], "result": list(view.result_kinds)}
    checked = breaches = 0
    said: list[str] = []
    parts = zip(kinds, stored.built(view), (f"SELECT * FROM ({rows}){late}", results), strict=True)
    for what, kept, rebuilt in parts:
        columns = [*kinds[what], "stretch_end"]
        con.register("stored_rows", stored.con.sql(f"FROM {kept}").to_arrow_table())
        shape = Shape(["key"], [name for name in columns if name != "key"])
        compared = compare(con, "FROM stored_rows", rebuilt, shape)
        checked, breaches = checked + compared.rows, breaches + compared.differing
        said += [f"{what} {row}" for row in compared.first(NAMES)]
    return finding("I7", law, checked, "rows", said, count=breaches)
