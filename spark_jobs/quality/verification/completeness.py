"""I1 and I2: nothing lost, nothing counted twice, no byte changed.

master.log, facts.*, Kafka's offsets, the producers' ledger -> Findings.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import duckdb

from spark_jobs.contracts.row_types import Partition
from spark_jobs.quality.verification.breach_queries import breaches, number
from spark_jobs.quality.verification.findings import Absent, Finding, finding

OFFSETS = "every committed offset below the head is in the log once"
ENDS = "below the cut a record is a fact, a quarantined record or a duplicate"
ONCE = "no event is two facts"
BYTES = "bytes are the producer's"

Available = Mapping[Partition, tuple[int, int]]
"""Per partition Kafka's earliest offset and end offset."""
Gap = tuple[str, int, int, int]
"""Topic, partition, and offsets [from, until) that the log does not have."""
Count = Callable[[Gap], int | None]
"""How many committed records Kafka has in a gap; None where it no longer knows."""


def offsets_are_in_the_log_once(con: duckdb.DuckDBPyConnection, available: Available, in_kafka: Count) -> Finding:
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
    lost += _never_read(con, available)
    lag = sum(max(0, end - until) for until, end in _ends(con, available))
    notes = [f"lag {lag:,}"] + [f"{unknown:,} offsets of gaps are no longer in Kafka to ask"] * bool(unknown)
    return finding("I1", OFFSETS, checked, "records", twice + lost, count=count + len(lost), note="; ".join(notes))


def gaps(con: duckdb.DuckDBPyConnection) -> list[Gap]:
    """Offsets within the landed ranges that no record has: transaction markers, compacted records, or losses."""
    found = con.execute(
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
    )
    return [(str(t), int(p), int(a), int(b)) for t, p, a, b in found.fetchall()]


def _lost(found: Sequence[Gap], in_kafka: Count) -> tuple[list[str], int]:
    lost, unknown = [], 0
    for gap in found:
        topic, partition, start, until = gap
        count = in_kafka(gap)
        if count is None:
            unknown += until - start
        elif count:
            lost.append(
                f"{topic} partition {partition}: {count} records of offsets [{start}, {until}) are not in the log"
            )
    return lost, unknown


def _never_read(con: duckdb.DuckDBPyConnection, available: Available) -> list[str]:
    """Records that Kafka still has from before the log's first offset of a partition."""
    first = {(t, p): s for t, p, s in con.execute(
        "SELECT topic, partition, arg_min(start, lsn) FROM ranges GROUP BY ALL").fetchall()}  # fmt: skip
    return [
        f"{topic} partition {partition}: the log begins at {first[topic, partition]}, Kafka at {earliest}"
        for (topic, partition), (earliest, _) in sorted(available.items())
        if earliest < first.get((topic, partition), earliest)
    ]


def _ends(con: duckdb.DuckDBPyConnection, available: Available) -> list[tuple[int, int]]:
    until = {(t, p): u for t, p, u in con.execute(
        "SELECT topic, partition, arg_max(until, lsn) FROM ranges GROUP BY ALL").fetchall()}  # fmt: skip
    return [(until.get(key, earliest), end) for key, (earliest, end) in available.items()]


def records_are_accounted_for(con: duckdb.DuckDBPyConnection, cut: int, sources: Mapping[str, str]) -> Finding:
    """I1: each record at or below the cut is one fact, one quarantined record or one counted duplicate.

    sources: what a record may have become ('fact of order_placed') -> relation with lsn and coordinates.
    """
    if not cut:
        raise Absent("nothing is built yet: the cut is 0")
    derived = " UNION ALL ".join(
        f"SELECT lsn, topic, partition, \"offset\", '{what}' AS what FROM {relation} WHERE lsn <= {int(cut)}"
        for what, relation in sources.items()
    )
    said, count = breaches(
        con,
        f"""
        SELECT topic || ' partition ' || partition || ' offset ' || "offset" || ' (lsn ' || lsn || ') is '
               || CASE WHEN landed = 0 THEN 'not in the log, but a ' || ends[1]
                       WHEN len(ends) = 0 THEN 'neither fact, quarantined nor duplicate'
                       ELSE array_to_string(list_sort(ends), ' and ') END AS said
        FROM (SELECT lsn, topic, partition, "offset", count(*) FILTER (what IS NULL) AS landed,
                     coalesce(list(what) FILTER (what IS NOT NULL), []) AS ends
              FROM (SELECT lsn, topic, partition, "offset", NULL AS what FROM records WHERE lsn <= {int(cut)}
                    UNION ALL {derived})
              GROUP BY lsn, topic, partition, "offset")
        WHERE landed = 0 OR len(ends) <> 1""",
    )
    checked = number(con, f"SELECT count(*) FROM records WHERE lsn <= {int(cut)}")
    return finding("I1", ENDS, checked, "records",
                   said, count=count)  # fmt: skip


def events_count_once(con: duckdb.DuckDBPyConnection, cut: int, facts: Mapping[str, str]) -> Finding:
    """I1: no two facts below the cut have the same identity. `facts`: event type -> relation."""
    if not facts or not cut:
        raise Absent("nothing is built yet")
    union = " UNION ALL ".join(
        f"SELECT '{event_type}' AS event_type, identity, count(*) AS n, min(event_id) AS id FROM {relation} "
        f"WHERE lsn <= {int(cut)} GROUP BY identity HAVING count(*) > 1"
        for event_type, relation in facts.items()
    )
    said, count = breaches(
        con, f"SELECT event_type || ' ' || coalesce(id, 'without id') || ' is ' || n || ' facts' AS said FROM ({union})"
    )
    checked = sum(number(con, f"SELECT count(*) FROM {one} WHERE lsn <= {int(cut)}") for one in facts.values())
    return finding("I1", ONCE, checked, "facts", said, count=count)


def bytes_are_the_producers(con: duckdb.DuckDBPyConnection, ledger: Sequence[Any], head: int) -> Finding:
    """I2: what producers wrote down, by coordinates, is what the log has: key, value and timestamp, byte for byte."""
    files = [str(file) for file in ledger]
    if not files:
        raise Absent("no producer kept a ledger here; records sent by others have no second source to compare with")
    said, count = breaches(
        con,
        f"""
        WITH sent AS (SELECT topic, partition, "offset", key, value, timestamp FROM read_parquet({files!r})),
             passed AS (SELECT topic, partition, arg_max(until, lsn) AS until FROM ranges GROUP BY ALL)
        SELECT s.topic || ' partition ' || s.partition || ' offset ' || s."offset" || CASE
                 WHEN l.lsn IS NULL THEN ' was sent and is not in the log'
                 WHEN l.key IS DISTINCT FROM s.key THEN ' has another key than was sent'
                 WHEN l.value IS DISTINCT FROM s.value THEN ' has another value than was sent'
                 ELSE ' has another timestamp than was sent' END AS said
        FROM sent s JOIN passed p ON s.topic = p.topic AND s.partition = p.partition AND s."offset" < p.until
        LEFT JOIN (SELECT * FROM log WHERE kind = 'record' AND lsn <= {int(head)}) l
               ON l.topic = s.topic AND l.partition = s.partition AND l."offset" = s."offset"
        WHERE l.lsn IS NULL OR l.key IS DISTINCT FROM s.key OR l.value IS DISTINCT FROM s.value
              OR epoch_ms(l.timestamp) <> epoch_ms(s.timestamp)""",
    )
    known = number(con, f"SELECT count(*) FROM read_parquet({files!r})")
    others = number(con, f"""SELECT count(*) FROM records l ANTI JOIN (SELECT topic, partition, "offset" FROM
        read_parquet({files!r})) s USING (topic, partition, "offset")""")  # fmt: skip
    note = f"{others:,} records of the log came from elsewhere and have no ledger" if others else ""
    return finding("I2", BYTES, known, "records", said, count=count, note=note)
