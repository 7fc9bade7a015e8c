"""I1 and I2: nothing lost, nothing counted twice, no byte changed.

master.log, facts.*, Kafka's offsets, the producer ledger -> Findings.
"""

from collections.abc import Callable, Mapping, Sequence

import duckdb
import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.contracts.row_types import Partition
from spark_jobs.expressions.dialect import Dialect, listed
from spark_jobs.quality.verification.findings import Absent, Finding, Law, breaches, number
from spark_jobs.quality.verification.scope import Scope

OFFSETS = Law("I1", "every committed offset below the head is in the log once", "records")
ROWS = Law("I1", "all tables together have the rows that the log's control rows count", "records")
ENDS = Law("I1", "below the cut a record is a fact, a quarantined record or a duplicate", "records")
ONCE = Law("I1", "no event is two facts", "facts")
BYTES = Law("I2", "bytes are the producer's", "records")
PLACE = listed(dict(row_types.COORDINATES), Dialect.DUCKDB)

WHOLE = "SELECT count(*) FROM (SELECT min(lsn) AS first, max(part) AS last FROM lsns) WHERE first = 1 AND last = 0"
"""Whether `con` has the log from its beginning on, and not a sample of it."""

Offsets = Mapping[Partition, tuple[int, int]]
"""Per partition the first offset that Kafka or the log has, and the one after the last."""
Gap = tuple[str, int, int, int]
"""Topic, partition, and offsets [from, until) that the log does not have."""
Count = Callable[[Gap], int | None]
"""How many committed records Kafka has in a gap; None where it no longer knows."""


def offsets_are_in_the_log_once(con: duckdb.DuckDBPyConnection, available: Offsets, in_kafka: Count) -> Finding:
    """I1: each committed offset that the log has passed is in it once; a gap is only where Kafka has nothing either."""
    checked = number(con, "SELECT count(*) FROM records")
    if not checked:
        raise Absent("the log has no record yet")
    twice, count = breaches(
        con,
        """
        SELECT topic || ' partition ' || partition || ' offset ' || "offset" || ' is in the log ' || count(*)
               || ' times' AS said FROM records GROUP BY topic, partition, "offset" HAVING count(*) > 1""",
    )
    lost, unknown = _lost(gaps(con), in_kafka)
    landed = _landed(con)
    lost += _never_read(landed, available) if number(con, WHOLE) else []
    lag = sum(max(0, end - landed.get(partition, (0, first))[1]) for partition, (first, end) in available.items())
    notes = [f"lag {lag:,}"] + [f"{unknown:,} offsets of gaps are no longer in Kafka to ask"] * bool(unknown)
    return OFFSETS.finding(checked, twice + lost, count + len(lost), "; ".join(notes))


def gaps(con: duckdb.DuckDBPyConnection) -> list[Gap]:
    """Offsets within the landed ranges that no record has: transaction markers, compacted records, or losses."""
    offsets: list[Gap] = con.execute(
        """
        WITH held AS (SELECT r.*, l."offset" AS place FROM ranges r LEFT JOIN records l
                      ON l.lsn = r.lsn AND l.topic = r.topic AND l.partition = r.partition),
             short AS (SELECT * FROM held
                       QUALIFY count(place) OVER (PARTITION BY lsn, topic, partition) < until - start),
             steps AS (SELECT topic, partition, coalesce(lag(place) OVER w + 1, start) AS a,
                       coalesce(place, until) AS b, lead(place) OVER w AS next, place, until FROM short
                       WINDOW w AS (PARTITION BY lsn, topic, partition ORDER BY place))
        SELECT topic, partition, a, b FROM steps WHERE a < b
        UNION SELECT topic, partition, place + 1, until FROM steps WHERE next IS NULL AND place + 1 < until
        ORDER BY ALL"""
    ).fetchall()
    return offsets


def _lost(missing: Sequence[Gap], in_kafka: Count) -> tuple[list[str], int]:
    """What Kafka has in the gaps, in words, and how many offsets it does not know any more."""
    lost, unknown = [], 0
    for gap in missing:
        topic, partition, start, until = gap
        count = in_kafka(gap)
        if count is None:
            unknown += until - start
        elif count:
            where = f"{topic} partition {partition}"
            lost.append(f"{where}: {count} records of offsets [{start}, {until}) are not in the log")
    return lost, unknown


def _landed(con: duckdb.DuckDBPyConnection) -> Offsets:
    ranges = con.execute("SELECT topic, partition, arg_min(start, lsn), arg_max(until, lsn) FROM ranges GROUP BY ALL")
    return {(topic, partition): (start, until) for topic, partition, start, until in ranges.fetchall()}


def _never_read(landed: Offsets, available: Offsets) -> list[str]:
    """Records that Kafka still has from before the log's first offset of a partition."""
    return [
        f"{topic} partition {partition}: the log begins at {landed[topic, partition][0]}, Kafka at {earliest}"
        for (topic, partition), (earliest, _) in sorted(available.items())
        if (topic, partition) in landed and earliest < landed[topic, partition][0]
    ]


def tables_add_up(counted: Mapping[str, int], rows: Mapping[str, int]) -> Finding:
    """I1: by the counts alone, as many rows are there as control rows say. `counted`, `rows`: what -> how many."""
    said = [f"{counted[what]:,} {what} by the control rows, {rows[what]:,} rows" for what in counted]
    breaches = [sentence for what, sentence in zip(counted, said, strict=True) if counted[what] != rows[what]]
    return ROWS.finding(sum(counted.values()), breaches)


def records_are_accounted_for(
    con: duckdb.DuckDBPyConnection, cut: int, ends: Mapping[str, str], scope: Scope
) -> Finding:
    """I1: each record at or below the cut is one fact, one quarantined record or one counted duplicate.

    ends: what a record may have become ('fact of order_placed') -> relation with lsn and coordinates.
    """
    derived = " UNION ALL ".join(
        f"SELECT lsn, topic, partition, \"offset\", '{what}' AS what FROM ({scope.of(relation, PLACE)})"
        for what, relation in ends.items()
    )
    query = f"""
        SELECT topic || ' partition ' || partition || ' offset ' || "offset" || ' (lsn ' || lsn || ') is '
               || CASE WHEN landed = 0 THEN 'not in the log, but a ' || ends[1]
                       WHEN len(ends) = 0 THEN 'neither fact, quarantined nor duplicate'
                       ELSE array_to_string(list_sort(ends), ' and ') END AS said
        FROM (SELECT lsn, topic, partition, "offset", count(*) FILTER (what IS NULL) AS landed,
                     coalesce(list(what) FILTER (what IS NOT NULL), []) AS ends
              FROM (SELECT lsn, topic, partition, "offset", NULL AS what FROM records WHERE lsn <= {cut:d}
                    UNION ALL {derived})
              GROUP BY lsn, topic, partition, "offset")
        WHERE landed = 0 OR len(ends) <> 1"""
    return ENDS.by_query(con, query, number(con, f"SELECT count(*) FROM records WHERE lsn <= {cut:d}"))


def events_count_once(
    con: duckdb.DuckDBPyConnection, cut: int, facts: Mapping[str, str], one_of: int, seed: int
) -> Finding:
    """I1: no two facts below the cut have the same identity; of every so many identities one is looked at.

    `facts`: event type -> relation.
    """
    if not facts:
        raise Absent("nothing is built yet")
    within = f"lsn <= {cut:d}" + (f" AND hash(identity) % {one_of:d} = {seed % one_of:d}" if one_of > 1 else "")
    union = " UNION ALL ".join(
        f"SELECT '{event_type}' AS event_type, identity, count(*) AS n, min(event_id) AS id FROM {relation} "
        f"WHERE {within} GROUP BY identity HAVING count(*) > 1"
        for event_type, relation in facts.items()
    )
    query = f"SELECT event_type || ' ' || coalesce(id, 'without id') || ' is ' || n || ' facts' AS said FROM ({union})"
    checked = sum(number(con, f"SELECT count(*) FROM {relation} WHERE {within}") for relation in facts.values())
    return ONCE.by_query(con, query, checked)


def bytes_are_the_producers(con: duckdb.DuckDBPyConnection, ledger: list[str], scope: Scope) -> Finding:
    """I2: what producers wrote down, by coordinates, is what the log has: key, value, timestamp and headers, byte for
    byte. A ledger that was written without headers says nothing of them.
    """
    if not ledger:
        raise Absent("no producer kept a ledger here; records sent by others have no second source to compare with")
    con.register("older", pa.schema([("headers", row_types.HEADERS)]).empty_table())
    sent = f"(FROM read_parquet({ledger!r}, union_by_name = true) UNION ALL BY NAME FROM older)"
    query = f"""
        WITH passed AS (SELECT topic, partition, CASE WHEN min(lsns.first) > 1 THEN min(start) ELSE 0 END AS start,
                               max(until) AS until
                        FROM ranges JOIN (SELECT part, min(lsn) AS first FROM lsns GROUP BY part) lsns USING (part)
                        GROUP BY part, topic, partition),
             sent AS (SELECT s.* FROM {sent} s JOIN passed p ON s.topic = p.topic AND s.partition = p.partition
                      AND s."offset" >= p.start AND s."offset" < p.until),
             landed AS ({scope.of("(SELECT * FROM log WHERE kind = 'record')")})
        SELECT s.topic || ' partition ' || s.partition || ' offset ' || s."offset" || CASE
                 WHEN l.lsn IS NULL THEN ' was sent and is not in the log'
                 WHEN l.key IS DISTINCT FROM s.key THEN ' has another key than was sent'
                 WHEN l.value IS DISTINCT FROM s.value THEN ' has another value than was sent'
                 WHEN epoch_ms(l.timestamp) <> epoch_ms(s.timestamp) THEN ' has another timestamp than was sent'
                 ELSE ' has other headers than were sent' END AS said
        FROM sent s LEFT JOIN landed l
               ON l.topic = s.topic AND l.partition = s.partition AND l."offset" = s."offset"
        WHERE l.lsn IS NULL OR l.key IS DISTINCT FROM s.key OR l.value IS DISTINCT FROM s.value
              OR epoch_ms(l.timestamp) <> epoch_ms(s.timestamp) OR coalesce(l.headers, []) <> s.headers"""
    known = number(con, f'SELECT count(*) FROM records l SEMI JOIN {sent} s USING (topic, partition, "offset")')
    others = number(con, "SELECT count(*) FROM records") - known
    note = f"{others:,} records of the log came from elsewhere and have no ledger" if others else ""
    return BYTES.by_query(con, query, known, note)
