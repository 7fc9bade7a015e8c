"""Decode records of the log: each by the schemas that its log says, whatever files there are today.

records, SchemaHistory -> a stretch of lsns with the same schemas after the other -> Decoded

A record is judged by the versions in force at its lsn. A record that they reject is still a fact if the versions in
force at the cut accept it: a schema that comes after its records takes them out of quarantine (I13). So do revisions,
and they change or take back facts (`revised`). So the facts of a cut are decided by the log up to the cut, and by
nothing else. Erased records (`erased`) are no facts, whatever they were.
"""

from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine.decode.assemble import Decoded, bare, with_outcomes
from spark_jobs.engine.decode.erased import divided
from spark_jobs.engine.decode.joined import joined
from spark_jobs.engine.decode.revised import reconsidered, revised

AS_LANDED = 0
"""The cut of a reader, such as the speed layer, who knows of each record only what came before it."""


def decode_logged(records: pa.Table, history: SchemaHistory, cut: int = AS_LANDED) -> Decoded:
    """As `decode`, for records of any lsns. Facts have the columns of the newest version there is."""
    if not records.num_rows:
        return Decoded({}, row_types.REJECT.empty_table())
    lsns = records["lsn"]
    first, last = (bound.as_py() for bound in pc.min_max(lsns).values())
    if len(eras := list(history.eras(first, last, cut))) == 1:
        return joined([_of_era(records, history, first, cut)])
    masks = {begin: pc.and_(pc.greater_equal(lsns, begin), pc.less_equal(lsns, end)) for begin, end in eras}
    return joined([_of_era(records.filter(mask), history, begin, cut) for begin, mask in masks.items()])


def _of_era(records: pa.Table, history: SchemaHistory, lsn: int, cut: int) -> Decoded:
    known, later, said = history.at(lsn), history.at(max(lsn, cut)), history.revisions.at(max(lsn, cut))
    records, erased = divided(records, said)
    decoded = bare(records, known)
    if later is not known or said.by_place:
        decoded = reconsidered(decoded, said, known, later)
    if said.by_identity:
        decoded = revised(decoded, records, said, later)
    if erased.num_rows:
        decoded = replace(decoded, rejects=pa.concat_tables([decoded.rejects, erased]))
    return with_outcomes(decoded, known)
