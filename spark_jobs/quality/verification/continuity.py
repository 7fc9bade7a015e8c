"""I4: no hole and no overlap, in lsns, in offsets, in coverage.

control rows of master.log and speed.partials -> Findings.
"""

from collections.abc import Mapping

import duckdb

from spark_jobs.contracts import row_types
from spark_jobs.quality.verification.findings import Absent, Finding, Law, number

LSNS = Law("I4", "lsns are contiguous, each with one control row that counts its records", "lsns")
RANGES = Law("I4", "offset ranges chain without hole or overlap", "ranges")
PLACES = Law("I4", "every record lies in the range of its lsn", "records")
COVERAGE = Law("I4", "every served view has partials for (cut, head], once per lsn", "view lsns")


def lsns_are_contiguous(con: duckdb.DuckDBPyConnection) -> Finding:
    """I4: each lsn has one control row that counts its records, and no record is without one."""
    query = """
        WITH control AS (SELECT lsn, count(*) AS n, sum(records) AS records FROM landings GROUP BY lsn),
             held AS (SELECT lsn, count(*) AS records FROM records GROUP BY lsn)
        SELECT CASE WHEN n IS NULL AND h.lsn IS NULL THEN 'lsn ' || a.lsn || ' is missing'
                    WHEN n IS NULL THEN 'lsn ' || a.lsn || ' has records but no control row'
                    WHEN n > 1 THEN 'lsn ' || a.lsn || ' was landed ' || n || ' times'
                    ELSE 'lsn ' || a.lsn || ' says ' || c.records || ' records and has ' || coalesce(h.records, 0)
               END AS said
        FROM (SELECT lsn FROM lsns UNION SELECT lsn FROM held) a
        LEFT JOIN control c USING (lsn) LEFT JOIN held h USING (lsn)
        WHERE n IS DISTINCT FROM 1 OR c.records <> coalesce(h.records, 0)"""
    return LSNS.by_query(con, query, number(con, "SELECT count(*) FROM lsns"))


def offsets_chain(con: duckdb.DuckDBPyConnection) -> Finding:
    """I4: per partition, each micro-batch starts at the offset where the one before ended."""
    query = """
        SELECT topic || ' partition ' || partition || ' at lsn ' || lsn || CASE
                 WHEN until < start THEN ': the range [' || start || ', ' || until || ') runs backwards'
                 WHEN start > before THEN ': offsets [' || before || ', ' || start || ') are in no micro-batch'
                 ELSE ': offsets [' || start || ', ' || before || ') are in two micro-batches' END AS said
        FROM (SELECT *, lag(until) OVER (PARTITION BY part, topic, partition ORDER BY lsn) AS before FROM ranges)
        WHERE until < start OR (before <> start AND loss IS NULL)"""
    losses = [row[0] for row in con.execute("SELECT DISTINCT loss FROM ranges WHERE loss IS NOT NULL").fetchall()]
    note = "; ".join(f"accepted by an operator: {loss}" for loss in losses)
    return RANGES.by_query(con, query, number(con, "SELECT count(*) FROM ranges"), note)


def records_lie_in_their_range(con: duckdb.DuckDBPyConnection) -> Finding:
    """I4: every record's offset is in the range that its lsn took."""
    query = """
        SELECT l.topic || ' partition ' || l.partition || ' offset ' || l."offset" || ' is at lsn ' || l.lsn
               || ', which did not take it' AS said
        FROM records l LEFT JOIN ranges r ON l.lsn = r.lsn AND l.topic = r.topic AND l.partition = r.partition
             AND l."offset" >= r.start AND l."offset" < r.until
        WHERE r.lsn IS NULL"""
    return PLACES.by_query(con, query, number(con, "SELECT count(*) FROM records"))


def views_are_covered(con: duckdb.DuckDBPyConnection, cuts: Mapping[str, int], head: int) -> Finding:
    """I4: above its cut every served view has partials of each lsn up to head, once. `cuts`: view column -> cut."""
    if not cuts:
        raise Absent("nothing is published yet")
    wanted = ", ".join(f"('{column}', {cut:d})" for column, cut in cuts.items())
    query = f"""
        WITH seen AS (SELECT lsn, v AS col, count(*) AS n FROM (SELECT lsn, unnest(control.views) AS v FROM partials
                      WHERE view = '{row_types.BATCH_ROW}' AND lsn > {min(cuts.values()):d} AND lsn <= {head:d})
                      GROUP BY ALL),
             wanted AS (SELECT col, lsn FROM (VALUES {wanted}) w(col, cut) JOIN lsns ON lsn > cut)
        SELECT 'view ' || col || ' at lsn ' || lsn || CASE WHEN n IS NULL THEN ' has no partials'
               ELSE ' was computed ' || n || ' times' END AS said
        FROM wanted LEFT JOIN seen USING (col, lsn) WHERE n IS DISTINCT FROM 1"""
    checked = sum(number(con, f"SELECT count(*) FROM lsns WHERE lsn > {cut:d}") for cut in cuts.values())
    return COVERAGE.by_query(con, query, checked)
