"""Questions to the tables' files: each is one query whose answer is the list of breaches.

DuckDB connection (relations `log`, `partials`) + head -> temporary tables `records`, `ranges` -> breaches.
"""

import duckdb

from spark_jobs.contracts import row_types
from spark_jobs.quality.verification.findings import SHOWN


def prepare(con: duckdb.DuckDBPyConnection, head: int) -> None:
    """Temporary tables over the relation `log` up to lsn `head`: `records` (coordinates) and `ranges`."""
    con.execute(
        'CREATE OR REPLACE TEMP TABLE records AS SELECT lsn, topic, partition, "offset" FROM log '
        f"WHERE kind = 'record' AND lsn <= {int(head)}"
    )
    con.execute(
        "CREATE OR REPLACE TEMP TABLE ranges AS SELECT lsn, loss, r.topic, r.partition, r.from_offset AS start, "
        "r.until_offset AS until FROM (SELECT lsn, batch.accepted_loss AS loss, unnest(batch.ranges) AS r FROM log "
        f"WHERE kind = '{row_types.BATCH_ROW}' AND lsn <= {int(head)})"
    )


def breaches(con: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], int]:
    """The first breaches as sentences (the query's only column, `said`), and how many there are."""
    con.execute(f"CREATE OR REPLACE TEMP TABLE said AS {query}")
    first = [row[0] for row in con.execute(f"SELECT said FROM said ORDER BY said LIMIT {SHOWN}").fetchall()]
    return first, number(con, "SELECT count(*) FROM said")


def number(con: duckdb.DuckDBPyConnection, query: str) -> int:
    row = con.execute(query).fetchone()
    return int(row[0] or 0) if row else 0
