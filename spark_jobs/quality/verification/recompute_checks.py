"""I7: recomputed from the log, facts and batch tables are what is stored.

recompute (DuckDB, from the log) | what the batch layer stored -> Findings: facts, rejects, duplicates; then every view.
"""

from collections.abc import Mapping
from dataclasses import replace

import duckdb

from spark_jobs.batch import rejected
from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.definitions.bound_view import AggregateView, SequenceView, View
from spark_jobs.expressions.epoch import since_epoch
from spark_jobs.quality import recompute
from spark_jobs.quality.verification.findings import Finding, Law
from spark_jobs.quality.verification.scope import EACH, OneOf
from spark_jobs.serving.compare import Comparison, Shape, compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import duckdb_reader, tables

PLACE = list(dict(row_types.COORDINATES))
FACTS = Law("I7", "facts are what the log gives", "rows")


def law_of_lsns(first: int, last: int) -> Law:
    return Law("I7", f"facts of the lsns {first} to {last} are what the log gives", "rows")


def facts_stand(
    con: duckdb.DuckDBPyConnection, cut: int, above: int = 0, law: Law = FACTS, some: OneOf = EACH
) -> Finding:
    """Facts, quarantined records and duplicates of (above, cut] are those that the log gives, recomputed in `con`.

    some: of which records `con` has them.
    """
    relations = {
        tables.facts(c.event_type): (f"facts_{c.event_type}", c.fact_schema.names) for c in project_contracts()
    }
    relations[tables.QUARANTINE] = ("rejects", [*PLACE, "value", "reason", "field"])
    relations[tables.DUPLICATES] = ("duplicates", [*PLACE, "event_type", "identity"])
    comparisons = {}
    for table, (relation, columns) in relations.items():
        stored = f"FROM {relation} WHERE false"  # of a type that is newer than the cut
        if duckdb_reader.exists(table):
            con.register("stored_rows", duckdb_reader.dataset(table))
            stored = f"FROM stored_rows WHERE lsn > {above:d} AND lsn <= {cut:d} AND {some.condition}"
        shape = Shape(PLACE, [name for name in columns if name not in PLACE])
        comparisons[f"{table}: "] = compare(con, stored, f"FROM {relation}", shape, f"differing_{relation}")
    return replace(_finding(law, comparisons), note=some.note)


def law_of(view: View) -> Law:
    return Law("I7", f"{view.id} is what its facts give", "rows")


def view_stands(con: duckdb.DuckDBPyConnection, stored: LocalAnswers, view: View, where: str = "true") -> Finding:
    """The view's batch tables are those that the facts give, for the stored keys `where`.

    `con`: with `facts_<type>` up to the cut; `stored`: head = cut.
    """
    if isinstance(view, AggregateView):
        own = f"SELECT * FROM ({stored.own(view)}) WHERE {where}"
        parts = {"": (own, recompute.answer(con, view, where), shape_of(view, tolerance=1e-9))}
    else:
        parts = _of_sequence(con, stored, view, where)
    comparisons: dict[str, Comparison] = {}
    if rejects := recompute.rejects(view):
        con.register("stored_rejects", rejected.of_view(view.id, 0, stored.head))
        shape = Shape(PLACE, ["event_type", "field"])
        comparisons["reject "] = compare(con, "FROM stored_rejects", rejects, shape, "differing_rejects")
    for what, (query, recomputed, shape) in parts.items():
        con.register("stored_rows", stored.con.sql(query).to_arrow_table())
        comparisons[what] = compare(con, "FROM stored_rows", recomputed, shape, f"differing_{len(comparisons)}")
    return _finding(law_of(view), comparisons)


def _of_sequence(
    con: duckdb.DuckDBPyConnection, stored: LocalAnswers, view: SequenceView, where: str
) -> dict[str, tuple[str, str, Shape]]:
    """What is compared -> SELECT of the stored rows, SELECT of the recomputed ones, and their shape."""
    horizon = stored.sources[view.id].horizon
    late = "" if horizon is None else f" WHERE stretch_end >= {since_epoch(horizon)}"
    row_table, result_table = stored.built(view)
    rows, results = recompute.stored(con, view, where)
    row_columns = ["lsn", *(name for name in view.row_kinds if name != "key"), "stretch_end"]
    result_columns = [*(name for name in view.result_kinds if name != "key"), "stretch_end"]
    return {
        "row ": (f"FROM {row_table} WHERE {where}", f"FROM ({rows}){late}", Shape(["key"], row_columns)),
        "result ": (f"FROM {result_table} WHERE {where}", results, Shape(["key"], result_columns)),
    }


def _finding(law: Law, comparisons: Mapping[str, Comparison]) -> Finding:
    """One finding about all of them; each differing row after what was compared."""
    said = [
        f"{what}{row}" for what, compared in comparisons.items() for row in compared.first(("stored", "recomputed"))
    ]
    rows = sum(compared.rows for compared in comparisons.values())
    return law.finding(rows, said, sum(compared.differing for compared in comparisons.values()))
