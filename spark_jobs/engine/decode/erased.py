"""Records about somebody who is forgotten: none of them is a fact, whatever bytes there are.

records, revisions -> divided -> (the others, the erased ones as rejects without their content)

First a revision says so; later the record's own row, whose bytes are gone. Both are read alike, so that a build before
and one after give the same rows (I7, I18).
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import erasures, row_types
from spark_jobs.contracts.revisions import InForce
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.engine.decode.reasons import Reason


def divided(records: pa.Table, said: InForce) -> tuple[pa.Table, pa.Table]:
    """(records that are not erased, rejects: columns of REJECT)."""
    rows = sorted({*erasures.is_blanked(records), *named(records, said)})
    if not rows:
        return records, row_types.REJECT.empty_table()
    kept = np.ones(records.num_rows, bool)
    kept[rows] = False
    return records.filter(pa.array(kept)), _rejects(records.take(pa.array(rows, pa.int64())))


def named(records: pa.Table, said: InForce) -> list[int]:
    """The numbers of the rows that revisions have erased."""
    if not said.erased:
        return []
    near = np.flatnonzero(pc.is_in(records["lsn"], said.erased_lsns).to_numpy())
    places = zip(near.tolist(), places_of(records.take(pa.array(near))), strict=True)
    return [row for row, place in places if place in said.erased]


def _rejects(records: pa.Table) -> pa.Table:
    rejects = erasures.without_content(records.select(row_types.RECORD.names))
    for column in list(row_types.REJECT)[len(row_types.RECORD) :]:
        value = str(Reason.ERASED) if column.name == "reason" else None
        rejects = rejects.append_column(column, pa.repeat(pa.scalar(value, column.type), rejects.num_rows))
    return rejects.cast(row_types.REJECT)
