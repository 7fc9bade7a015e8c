"""Decode records of the log: each by the schemas that its log says, whatever files there are today.

records, SchemaHistory -> a stretch of lsns with the same schemas after the other -> Decoded

A record is judged by the versions in force at its lsn. A record that they reject is still a fact if the versions in
force at the cut accept it: a schema that comes after its records takes them out of quarantine (I13). So the facts of a
cut are decided by the log up to the cut, and by nothing else.
"""

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.model import Contracts
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine.decode.assemble import Decoded, bare, with_outcomes
from spark_jobs.engine.dedupe import without

AS_LANDED = 0
"""The cut of a reader, such as the speed layer, who knows of each record only what came before it."""


def decode_logged(records: pa.Table, history: SchemaHistory, cut: int = AS_LANDED) -> Decoded:
    """As `decode`, for records of any lsns. Facts have the columns of the newest version there is."""
    if not records.num_rows:
        return Decoded({}, row_types.REJECT.empty_table())
    lsns = records["lsn"]
    first, last = (bound.as_py() for bound in pc.min_max(lsns).values())
    if len(eras := list(history.eras(first, last))) == 1:
        return _joined([_of_era(records, history, first, cut)])
    masks = {begin: pc.and_(pc.greater_equal(lsns, begin), pc.less_equal(lsns, end)) for begin, end in eras}
    return _joined([_of_era(records.filter(mask), history, begin, cut) for begin, mask in masks.items()])


def _of_era(records: pa.Table, history: SchemaHistory, lsn: int, cut: int) -> Decoded:
    known, later = history.at(lsn), history.at(max(lsn, cut))
    decoded = bare(records, known)
    return with_outcomes(decoded if later is known else _released(decoded, later), known)


def _released(decoded: Decoded, later: Contracts) -> Decoded:
    """With the rejected records that later versions accept; of the others the first verdict stands."""
    again = bare(decoded.rejects.select(row_types.RECORD.names), later)
    if not again.facts:
        return decoded
    places = pa.schema(row_types.COORDINATES)
    taken = pa.concat_tables(rows.select(places.names).cast(places) for rows in again.facts.values())
    return Decoded(_joined([decoded, again]).facts, without(decoded.rejects, taken))


def _joined(parts: Sequence[Decoded]) -> Decoded:
    """The parts as one. What newer versions add to facts is null in those that older versions read."""
    newest, facts = project_contracts(), defaultdict[str, list[pa.Table]](list)
    for part in parts:
        for name, rows in part.facts.items():
            facts[name].append(rows)
    widened = {name: _widened(tables, newest.of(name).fact_schema) for name, tables in facts.items()}
    return Decoded(widened, pa.concat_tables(part.rejects for part in parts))


def _widened(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    if any(rows.schema != schema for rows in tables):
        return pa.concat_tables([schema.empty_table(), *tables], promote_options="default")
    return pa.concat_tables(tables)
