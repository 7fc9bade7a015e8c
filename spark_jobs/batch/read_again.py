"""Which older records are read otherwise at a cut than at the one before: they are decoded again.

schemas and revisions that came in force in (previous cut, cut] -> quarantined records of their topics and places ->
decode -> those that are facts now, and the facts of which something was said, with whatever repeats either.
"""

from collections.abc import Collection, Iterator, Sequence

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Revision
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.decode.reasons import Reason
from spark_jobs.storage import duckdb_reader, log_reader, tables
from spark_jobs.storage.lsn_ranges import Range, covering

SAID = pa.schema([("event_type", pa.string()), ("identity", pa.binary())])


def lsns(history: SchemaHistory, previous: int, cut: int) -> list[Range]:
    """Ranges that cover the lsns up to `previous` whose facts or rejects are different at `cut`."""
    said = history.revisions.within(previous, cut)
    new = {entry.event_type for entry in history.within(previous, cut)}
    if not (said or new) or not duckdb_reader.exists(tables.QUARANTINE):
        return []
    con = duckdb_reader.connect({})
    con.register("said", _of_facts(said))
    con.execute("CREATE TEMP TABLE touched AS SELECT NULL::BIGINT AS lsn, * FROM said")
    con.register("named", pa.table({"lsn": _lsns_of_places(said)}))
    for facts in (*_accepted(history, said, new, previous, cut), *_readmitted_before(history, said, previous)):
        con.register("facts", facts.select(["lsn", *SAID.names]))
        con.execute("INSERT INTO touched FROM facts")
    sources = ["SELECT lsn FROM touched", "FROM named", *_repeating(con, with_duplicates=bool(said))]
    return covering(con, f"SELECT lsn FROM ({' UNION ALL '.join(sources)}) WHERE lsn <= {previous:d}")


def _accepted(
    history: SchemaHistory, said: Sequence[Revision], new: Collection[str], previous: int, cut: int
) -> Iterator[pa.Table]:
    """Facts that quarantined records are at the cut: of the event types with new schemas, and of which was spoken."""
    topics = sorted({project_contracts().of(event_type).topic for event_type in new})
    waiting = ds.field("topic").isin(pa.array(topics, pa.string())) | ds.field("lsn").isin(_lsns_of_places(said))
    if any(one.identity is not None for one in said):  # it may bring back what was taken back
        waiting |= ds.field("reason") == Reason.RETRACTED
    for records in log_reader.quarantined(waiting & (ds.field("lsn") <= previous)):
        yield from record_outcomes.countable(decode_logged(records, history, cut).facts).values()


def _readmitted_before(history: SchemaHistory, said: Sequence[Revision], previous: int) -> Iterator[pa.Table]:
    """Facts at places that were spoken of before, too: what repeats them may count again."""
    before = history.revisions.at(previous).by_place
    if len(lsns := _lsns_of_places([one for one in said if one.place in before])):
        for contract in project_contracts():
            if not contract.is_outcome and duckdb_reader.exists(tables.facts(contract.event_type)):
                facts = duckdb_reader.dataset(tables.facts(contract.event_type))
                yield facts.to_table(["lsn", *SAID.names], filter=ds.field("lsn").isin(lsns))


def _lsns_of_places(said: Sequence[Revision]) -> pa.Array:
    return pa.array(sorted({one.place.lsn for one in said if one.identity is None}), pa.int64())


def _of_facts(said: Sequence[Revision]) -> pa.Table:
    named = [{"event_type": one.event_type, "identity": one.identity} for one in said if one.identity is not None]
    return pa.Table.from_pylist(named, SAID)


def _repeating(con: duckdb.DuckDBPyConnection, with_duplicates: bool) -> Iterator[str]:
    """SELECTs of the lsns of stored facts, and duplicates, with the same identity."""
    known = "identity IN (SELECT identity FROM touched)"
    types = con.execute("SELECT DISTINCT event_type FROM touched ORDER BY event_type").fetchall()
    for number, (event_type,) in enumerate(types):
        con.register(f"stored_{number}", duckdb_reader.dataset(tables.facts(event_type)))
        yield f"SELECT lsn FROM stored_{number} WHERE {known}"
    if with_duplicates:
        con.register("duplicates", duckdb_reader.dataset(tables.DUPLICATES))
        yield f"SELECT lsn FROM duplicates WHERE {known}"
