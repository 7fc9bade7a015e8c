"""Hold the new build of a view that was held back to its facts.

facts up to the cut --the view's own expressions--> the answers of some keys | what the run built -> differing rows.
Agreement cannot see what such a build lacks: its old source and the speed layer may lack the same corrections.
"""

from dataclasses import replace

from spark_jobs.definitions.bound_view import View
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.ledger.runs import UNEXPLAINED
from spark_jobs.ledger.source import Source
from spark_jobs.quality import recompute
from spark_jobs.quality.reconciliation.agreement import Agreement
from spark_jobs.registry.views import Views
from spark_jobs.serving.compare import compare, shape_of
from spark_jobs.serving.local_answer import LocalAnswers
from spark_jobs.storage import duckdb_reader, tables

DUCKDB = Dialect.DUCKDB
MOST_KEYS = 10_000
"""About as many are compared; the others of a larger view are not looked at."""
NOTE = "was held back, so it was held to its facts"


def held_to_facts(agreement: Agreement, views: Views, view: View, source: Source) -> Agreement:
    """The agreement, with the rows of the build that its facts do not give as unexplained ones."""
    built = LocalAnswers(views, {view.id: source}, source.cut)
    con, keys = built.con, listed(view.stored_keys, DUCKDB)
    for event_type in view.event_types:
        con.register(f"stored_{event_type}", duckdb_reader.dataset(tables.facts(event_type)))
        upto = f"SELECT * FROM stored_{event_type} WHERE lsn <= {source.cut:d}"
        con.execute(f"CREATE TEMP VIEW facts_{event_type} AS {upto}")
    one_of = duckdb_reader.row_count(view.tables[0], source.versions[0]) // MOST_KEYS + 1
    looked_at = f"hash({keys}) % {one_of} = {source.cut % one_of}" if view.stored_keys else "true"
    [relation, *_] = built.built(view)
    con.execute(f"CREATE TEMP TABLE looked_at AS SELECT DISTINCT {keys or '1'} FROM {relation} WHERE {looked_at}")
    stored = built.with_keys(view, "looked_at").own(view)
    given_by_facts = recompute.answer(con, view, looked_at)
    compared = compare(con, stored, given_by_facts, shape_of(view, tolerance=1e-9))
    if not compared.differing:
        return replace(agreement, note=NOTE)
    causes = agreement.causes | {UNEXPLAINED: agreement.causes.get(UNEXPLAINED, 0) + compared.differing}
    named = (*agreement.unexplained, *compared.first(("batch", "facts")))
    return replace(agreement, causes=causes, unexplained=named, note=NOTE)
