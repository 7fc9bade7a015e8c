"""Compare what a view's expressions reject in the two layers, fact by fact.

master.view_rejects | __reject__ rows of the speed layer -> how many facts only one of them rejects, the first in words.
A fact that is left out of an answer is seen by nobody who compares answers, unless the other layer has it.
"""

import pyarrow.compute as pc

from spark_jobs.batch import rejected
from spark_jobs.definitions.bound_view import View
from spark_jobs.expressions import duckdb_session
from spark_jobs.quality.recompute import PLACE
from spark_jobs.quality.reconciliation.causes import Causes
from spark_jobs.serving.compare import Shape, compare

SHAPE = Shape(["lsn", "topic", "partition", "offset"], ["event_type", "field"])


def differing(view: View, causes: Causes) -> tuple[int, tuple[str, ...]]:
    """Rejects between the cuts that differ, but for those of records that the layers were bound to see differently."""
    of_speed = causes.rejects_of_speed.filter(pc.equal(causes.rejects_of_speed["view"], view.column))
    of_batch = rejected.of_view(view.id, causes.old_cut, causes.new_cut)
    if not of_speed.num_rows and not of_batch.num_rows:
        return 0, ()
    with duckdb_session.connect() as con:
        for name, rows in {"of_batch": of_batch, "of_speed": of_speed, "known": causes.seen_otherwise(view)}.items():
            con.register(name, rows)
        unknown = f"SELECT * FROM {{}} ANTI JOIN known USING ({PLACE})"
        compared = compare(con, unknown.format("of_batch"), unknown.format("of_speed"), SHAPE)
        return compared.differing, tuple(f"rejected: {row}" for row in compared.first(("batch", "speed")))
