"""Put what was proven in bulk and what was judged row by row into the tables that decode returns.

records -> bulk.prove + rows.judge -> Decoded, with the outcomes of late and rejected records
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spark_jobs.contracts import row_types
from spark_jobs.contracts.model import DELETED, Contract, Contracts
from spark_jobs.engine import record_outcomes
from spark_jobs.engine.decode import identity
from spark_jobs.engine.decode.bulk.prove import ROWS, Proven, proven
from spark_jobs.engine.decode.reasons import Rejected
from spark_jobs.engine.decode.rows import Fact, judge
from spark_jobs.engine.record_outcomes import CARRIED, RECORD_OUTCOME


@dataclass(frozen=True)
class Decoded:
    """Facts (record outcomes among them) by event type, of the types that occur, in any order; the rejected records."""

    facts: dict[str, pa.Table]
    rejects: pa.Table


def decode(records: pa.Table, contracts: Contracts) -> Decoded:
    """Decode records (row_types.RECORD). Never fails on what a record holds; each ends as one fact or one reject, and
    has an outcome as well where it is rejected or late."""
    return with_outcomes(bare(records, contracts), contracts)


def bare(records: pa.Table, contracts: Contracts) -> Decoded:
    """As `decode`, without record outcomes."""
    facts, unproven, start = defaultdict[str, list[pa.Table]](list), [np.empty(0, np.int64)], 0
    for batch in records.cast(row_types.RECORD).to_batches(max_chunksize=ROWS):
        proofs, left = proven(batch, contracts)
        for proof in proofs:
            name = proof.contract.event_type
            facts[name].append(_proven_table(batch, proof, contracts.of(name)))
        unproven.append(left + start)
        start += batch.num_rows
    judged_facts, rejects = judged(records, np.concatenate(unproven), contracts)
    for name, parts in judged_facts.items():
        facts[name] += parts
    return Decoded(identified(facts), rejects)


def with_outcomes(decoded: Decoded, contracts: Contracts) -> Decoded:
    """With the record outcomes, where they are an event type."""
    facts, rejects = decoded.facts, decoded.rejects
    if RECORD_OUTCOME in contracts and (outcomes := record_outcomes.of_decoded(facts, rejects)):
        return Decoded({**facts, RECORD_OUTCOME: outcomes}, rejects)
    return decoded


def judged(
    records: pa.Table, rows: NDArray[np.int64], contracts: Contracts
) -> tuple[dict[str, list[pa.Table]], pa.Table]:
    """Facts (without identity) and rejects of the listed rows, one verdict after the other."""
    facts, refused = defaultdict[str, list[tuple[int, Fact]]](list), list[tuple[int, Rejected]]()  # with the row
    for row, record in zip(rows.tolist(), _readable(records, rows), strict=True):
        try:
            fact = judge(record, contracts)
            facts[fact.event_type].append((row, fact))
        except Rejected as rejected:
            refused.append((row, rejected))
    tables = {name: [_table(records, of_type, contracts.of(name))] for name, of_type in facts.items()}
    return tables, _rejects(records, refused)


def identified(parts: Mapping[str, list[pa.Table]]) -> dict[str, pa.Table]:
    """The parts of each event type as one table, with identities."""
    joined = {name: pa.concat_tables(of_type) for name, of_type in parts.items()}
    place = row_types.FACT.get_field_index("identity")
    return {name: t.set_column(place, row_types.FACT.field(place), identity.of(name, t)) for name, t in joined.items()}


def _proven_table(batch: pa.RecordBatch, proof: Proven, newest: Contract) -> pa.Table:
    size = len(proof.rows)
    columns = {
        "event_type": pa.repeat(proof.contract.event_type, size),
        "schema_version": pa.repeat(pa.scalar(proof.contract.version, pa.int32()), size),
        DELETED: pa.repeat(False, size),
    }
    return _facts(batch, proof.rows, newest, columns | proof.columns)


def _facts(
    records: pa.Table | pa.RecordBatch, rows: NDArray[np.int64], contract: Contract, columns: dict[str, pa.Array]
) -> pa.Table:
    """Facts in the order of `rows`; a column that is not given is null."""
    carried, schema = records.select(CARRIED).take(rows), contract.fact_schema
    given = {**{name: carried[name] for name in CARRIED}, **columns}
    return pa.table([given.get(f.name, pa.nulls(len(rows), f.type)) for f in schema], schema=schema)


def _readable(records: pa.Table, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
    if not len(rows):
        return []
    records = records.take(rows)
    micros = records["timestamp"].cast(pa.int64())  # a producer can send years that Python has not
    columns = records.select(["topic", "key", "value", "headers"])
    return list(columns.append_column("timestamp", micros).to_pylist())


def _table(records: pa.Table, numbered: list[tuple[int, Fact]], contract: Contract) -> pa.Table:
    rows, facts = np.array([row for row, _ in numbered], np.int64), [fact for _, fact in numbered]
    columns = {f.name: pa.array([fact.values[i] for fact in facts], f.arrow) for i, f in enumerate(contract.fields)}
    for name in ("event_type", "schema_version", "event_id", "occurred_at", "deleted"):
        columns[name] = pa.array([getattr(fact, name) for fact in facts], row_types.FACT.field(name).type)
    return _facts(records, rows, contract, columns)


def _rejects(records: pa.Table, refused: list[tuple[int, Rejected]]) -> pa.Table:
    if not refused:
        return row_types.REJECT.empty_table()
    rejects = records.take(pa.array([row for row, _ in refused], pa.int64()))
    for column in list(row_types.REJECT)[len(row_types.RECORD) :]:
        values = [getattr(rejected, column.name) for _, rejected in refused]
        rejects = rejects.append_column(column, pa.array(values, column.type))
    return rejects.cast(row_types.REJECT)
