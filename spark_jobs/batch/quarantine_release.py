"""Release records from quarantine that a schema accepts which came after them.

schemas that came in force in (previous cut, cut] -> quarantined records of their topics -> decode -> the lsns to decode
again: those of the records and of their repetitions, as the first record of an identity counts.
"""

from collections.abc import Iterator

import duckdb
import pyarrow.dataset as ds

from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.storage import duckdb_reader, log_reader, tables
from spark_jobs.storage.lsn_ranges import Range, covering


def lsns(history: SchemaHistory, previous: int, cut: int) -> list[Range]:
    """Ranges that cover the lsns up to `previous` whose facts are different at `cut`."""
    new = {entry.event_type for entry in history.within(previous, cut)}
    topics = sorted({project_contracts().of(event_type).topic for event_type in new})
    if not topics or not duckdb_reader.exists(tables.QUARANTINE):
        return []
    con = duckdb_reader.connect({})
    con.execute("CREATE TEMP TABLE accepted (lsn BIGINT, event_type VARCHAR, identity BLOB)")
    older_ones = ds.field("topic").isin(topics) & (ds.field("lsn") <= previous)
    for records in log_reader.quarantined(older_ones):
        for facts in record_outcomes.countable(decode_logged(records, history, cut).facts).values():
            con.register("facts", facts.select(["lsn", "event_type", "identity"]))
            con.execute("INSERT INTO accepted FROM facts")
    sources = ["SELECT lsn FROM accepted", *_repeating(con)]
    older = f"SELECT lsn FROM ({' UNION ALL '.join(sources)}) WHERE lsn <= {previous:d}"
    return covering(con, older)


def _repeating(con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """SELECTs of the lsns of stored facts with the same identity."""
    types = con.execute("SELECT DISTINCT event_type FROM accepted ORDER BY event_type").fetchall()
    for number, (event_type,) in enumerate(types):
        con.register(f"stored_{number}", duckdb_reader.dataset(tables.facts(event_type)))
        yield f"SELECT lsn FROM stored_{number} WHERE identity IN (SELECT identity FROM accepted)"
