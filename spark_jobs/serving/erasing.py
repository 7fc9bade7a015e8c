"""Find every record about somebody, to have it erased.

Subject -> stored facts, the log's raw bytes and keys up to its head -> the places of records, with their topics.

The bytes are searched as well as the facts, as a record that repeats one, or that no schema accepts, names people too.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from spark_jobs.contracts import row_types
from spark_jobs.contracts.erasures import Subject
from spark_jobs.contracts.loader import project_contracts
from spark_jobs.contracts.revisions import Place
from spark_jobs.contracts.schema_history import SchemaHistory
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode.by_schema import decode_logged
from spark_jobs.engine.decode.joined import places_of
from spark_jobs.storage import duckdb_reader, log_reader, tables

PORTION = 50_000
"""Records in memory; one may have a megabyte."""


def find(subject: Subject, history: SchemaHistory, decoded: int, head: int) -> list[Place]:
    """Places of the records about the subject that have landed by `head` and are not erased, in the log's order.

    decoded: up to it facts are stored.
    """
    erased = history.revisions.at(head).erased
    places = {*_stored(subject, decoded), *_landed(subject, history, decoded, head)} - erased.keys()
    return sorted(places)


def _stored(subject: Subject, decoded: int) -> Iterator[Place]:
    """Places of stored facts, whatever the spelling of the value was: 7.0 and 7e0 are 7."""
    for contract, name in subject.fields(project_contracts()):
        table, value = tables.facts(contract.event_type), subject.typed(contract, name)
        if value is not None and duckdb_reader.exists(table):
            about = (ds.field(name) == value) & (ds.field("lsn") <= decoded)
            yield from places_of(duckdb_reader.dataset(table).to_table([*dict(row_types.COORDINATES)], filter=about))


def _landed(subject: Subject, history: SchemaHistory, decoded: int, head: int) -> Iterator[Place]:
    pattern, keyed = subject.pattern(project_contracts()), subject.keyed_topics(project_contracts())
    for records in log_reader.portions(ds.scalar(True), [(1, head)], PORTION):
        said = pc.match_substring_regex(records["value"], pattern)
        key = pc.and_(pc.is_in(records["topic"], pa.array(keyed, pa.string())), pc.equal(records["key"], _key(subject)))
        about = pc.or_(pc.fill_null(said, False), pc.fill_null(key, False))
        yield from places_of(records.filter(about))
        if pc.max(records["lsn"]).as_py() > decoded:
            yield from _as_facts(subject, records.filter(pc.greater(records["lsn"], decoded)), history, head)


def _as_facts(subject: Subject, records: pa.Table, history: SchemaHistory, head: int) -> Iterator[Place]:
    facts = record_outcomes.countable(decode_logged(records, history, head).facts)
    for contract, name in subject.fields(project_contracts()):
        rows, value = facts.get(contract.event_type), subject.typed(contract, name)
        if rows is not None and value is not None:
            yield from places_of(rows.filter(pc.fill_null(pc.equal(rows[name], value), False)))


def _key(subject: Subject) -> pa.Scalar:
    return pa.scalar(subject.value.encode(), pa.binary())
