"""Hot keys: keys of a sequence view whose open stretch has become too long to be resolved at every question.

stored rows of a build -> HotKey -> ledger. A hot key is served as of the build; its later rows are deferred to the next
build, which resolves all of them. So a bot costs its own freshness, and no reader's time.
"""

from spark_jobs.definitions.bound_view import SequenceView
from spark_jobs.engine import sequences
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.ledger.schema import HotKey
from spark_jobs.storage import duckdb_reader

MOST = 1_000
"""At most so many keys of a view are hot, those with the longest stretches: each is a literal in the serving SQL."""


def hot_keys(view: SequenceView, version: int, most_rows: int) -> list[HotKey]:
    """The keys with more than `most_rows` rows in a stretch that is not over at the view's newest row."""
    rows, _ = view.tables
    if duckdb_reader.row_count(rows, version) <= most_rows:
        return []
    carried = sequences.not_carried(view)
    with duckdb_reader.connect({"stored": (rows, version)}) as con:
        longest = con.execute(
            f"SELECT CAST(key AS VARCHAR), {sequences.digest(Dialect.DUCKDB)}, count(*) AS size "
            f"FROM stored{carried} GROUP BY key, stretch_end HAVING size > {most_rows:d} AND "
            "stretch_end >= (SELECT max(ts) FROM stored) "
            f"ORDER BY size DESC, 1 LIMIT {MOST}"
        ).fetchall()
    return [
        HotKey(view_id=view.id, batch_version=version, digest=digest, key=key, row_count=size)
        for key, digest, size in longest
    ]
