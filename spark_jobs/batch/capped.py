"""The cap: keys of a sequence view whose open stretch has become too long to be resolved at every question.

stored rows of a build -> CappedKey -> ledger. Such a key is served as of the build; what it sends later waits for the
next one, which resolves all of it. A bot costs its own freshness, and no other reader's time.
"""

from spark_jobs import sequences, tables, waiting, warehouse
from spark_jobs.dialect import Dialect
from spark_jobs.ledger.models import CappedKey
from spark_jobs.view import SequenceView

MOST = 1_000
"""So many keys of a view are capped at most, those with the longest stretches: each is a literal in the serving SQL."""


def capped(view: SequenceView, version: int, most_rows: int) -> list[CappedKey]:
    """The keys with more than `most_rows` rows in a stretch that is not over at the view's newest row."""
    if warehouse.row_count(tables.batch_rows(view.id), version) <= most_rows:
        return []
    carried = sequences.not_carried(view)
    with warehouse.connect({"stored": (tables.batch_rows(view.id), version)}) as con:
        found = con.execute(
            f"SELECT CAST(key AS VARCHAR), {waiting.digest(Dialect.DUCKDB)}, count(*) AS size FROM stored{carried} "
            f"GROUP BY key, stretch_end HAVING size > {most_rows:d} AND stretch_end >= (SELECT max(ts) FROM stored) "
            f"ORDER BY size DESC, 1 LIMIT {MOST}"
        ).fetchall()
    return [
        CappedKey(view_id=view.id, batch_version=version, digest=digest, key=key, row_count=size)
        for key, digest, size in found
    ]
