"""Decode records of the log: each by the schemas that its log says, whatever files there are today.

records, SchemaHistory -> a stretch of lsns with the same schemas after the other -> Decoded

A record is judged by the versions in force at its lsn. Of those rejected by them, the ones that the versions in force
at the cut accept are facts after all: a schema that comes after its records takes them out of quarantine (I13). So the
facts of a cut are decided by the log up to the cut, and by nothing else.
"""

from collections.abc import Iterable

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
    eras = list(history.eras(first, last))
    if len(eras) == 1:
        return _widened(_of_era(records, history, first, cut))
    parts = []
    for begin, end in eras:
        of = records.filter(pc.and_(pc.greater_equal(lsns, begin), pc.less_equal(lsns, end)))
        parts.append(_widened(_of_era(of, history, begin, cut)))
    return _joined(parts)


def _of_era(records: pa.Table, history: SchemaHistory, lsn: int, cut: int) -> Decoded:
    known, later = history.at(lsn), history.at(max(lsn, cut))
    decoded = bare(records, known)
    return with_outcomes(decoded if later is known else _released(decoded, later), known)


def _released(found: Decoded, later: Contracts) -> Decoded:
    """With the rejected records that later versions accept; of the others the first verdict stands."""
    again = bare(found.rejects.select(row_types.RECORD.names), later)
    if not again.facts:
        return found
    places = pa.schema(row_types.COORDINATES)
    taken = pa.concat_tables(rows.select(places.names).cast(places) for rows in again.facts.values())
    facts = _joined([_widened(found), _widened(again)]).facts
    return Decoded(facts, without(found.rejects, taken))


def _widened(found: Decoded) -> Decoded:
    """The facts with the columns that newer versions have; null, as these records were not read by them."""
    newest = project_contracts()
    return Decoded({name: _as(rows, newest.of(name).fact_schema) for name, rows in found.facts.items()}, found.rejects)


def _as(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    if rows.schema == schema:
        return rows
    known = set(rows.column_names)
    columns = [rows[f.name] if f.name in known else pa.nulls(rows.num_rows, f.type) for f in schema]
    return pa.table(columns, schema=schema)


def _joined(parts: Iterable[Decoded]) -> Decoded:
    facts: dict[str, list[pa.Table]] = {}
    rejects = []
    for part in parts:
        rejects.append(part.rejects)
        for name, rows in part.facts.items():
            facts.setdefault(name, []).append(rows)
    return Decoded({name: pa.concat_tables(of_type) for name, of_type in facts.items()}, pa.concat_tables(rejects))
