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

CARRIED = ("lsn", "topic", "partition", "offset", "timestamp")  # columns that a fact takes over from its record


@dataclass(frozen=True)
class Decoded:
    """Facts (record outcomes among them) by event type, of the types that occur, in any order; the rejected records."""

    facts: dict[str, pa.Table]
    rejects: pa.Table


def decode(records: pa.Table, contracts: Contracts) -> Decoded:
    """Decode records (row_types.RECORD). Never fails on what a record holds; each ends as one fact or one reject.

    Those that are rejected or late have a note as well.
    """
    return with_outcomes(bare(records, contracts), contracts)


def by_row(records: pa.Table, contracts: Contracts) -> Decoded:
    """The same answer without the vectorised path: the reference for tests."""
    parts, rejects = judged(records, np.arange(records.num_rows), contracts)
    return with_outcomes(Decoded(identified(parts), rejects), contracts)


def bare(records: pa.Table, contracts: Contracts) -> Decoded:
    """As `decode`, without record outcomes."""
    facts: dict[str, list[pa.Table]] = defaultdict(list)
    unproven, start = [], 0
    for batch in records.cast(row_types.RECORD).to_batches(max_chunksize=ROWS):
        proofs, left = proven(batch, contracts)
        for proof in proofs:
            name = proof.contract.event_type
            facts[name].append(_proven_table(batch, proof, contracts.of(name)))
        unproven.append(left + start)
        start += batch.num_rows
    rows = np.concatenate(unproven) if unproven else np.empty(0, np.int64)
    judged_facts, rejects = judged(records, rows, contracts)
    for name, parts in judged_facts.items():
        facts[name] += parts
    return Decoded(identified(facts), rejects)


def with_outcomes(found: Decoded, contracts: Contracts) -> Decoded:
    """With the record outcomes, where they are an event type."""
    if record_outcomes.RECORD_OUTCOME not in contracts or not (
        rows := record_outcomes.of_decoded(found.facts, found.rejects)
    ):
        return found
    return Decoded({**found.facts, record_outcomes.RECORD_OUTCOME: rows}, found.rejects)


def judged(
    records: pa.Table, rows: NDArray[np.int64], contracts: Contracts
) -> tuple[dict[str, list[pa.Table]], pa.Table]:
    """Facts (without identity) and rejects of the listed rows, one verdict after the other."""
    facts: dict[str, list[tuple[int, Fact]]] = defaultdict(list)  # by event type, with the row
    refused: list[tuple[int, Rejected]] = []
    for row, record in zip(rows.tolist(), _readable(records, rows), strict=True):
        try:
            fact = judge(record, contracts)
            facts[fact.event_type].append((row, fact))
        except Rejected as rejected:
            refused.append((row, rejected))
    tables_of = {name: [_table(records, found, contracts.of(name))] for name, found in facts.items()}
    return tables_of, _rejects(records, refused)


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
    carried = records.select(CARRIED).take(rows)
    given = {**{name: carried[name] for name in CARRIED}, **columns}
    schema = contract.fact_schema
    return pa.table([given.get(f.name, pa.nulls(len(rows), f.type)) for f in schema], schema=schema)


def _readable(records: pa.Table, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
    if not len(rows):
        return []
    records = records.take(rows)
    micros = records["timestamp"].cast(pa.int64())  # a producer can send years that Python has not
    columns = records.select(["topic", "key", "value", "headers"])
    return list(columns.append_column("timestamp", micros).to_pylist())


def _table(records: pa.Table, found: list[tuple[int, Fact]], contract: Contract) -> pa.Table:
    rows, facts = np.array([row for row, _ in found], np.int64), [fact for _, fact in found]
    columns = {f.name: _array([fact.values[i] for fact in facts], f.arrow) for i, f in enumerate(contract.fields)}
    for name in ("event_type", "event_id", "occurred_at", "deleted"):
        columns[name] = _array([getattr(fact, name) for fact in facts], row_types.FACT.field(name).type)
    columns["schema_version"] = pa.array([fact.version for fact in facts], pa.int32())
    return _facts(records, rows, contract, columns)


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(kind) if kind == row_types.INSTANT else pa.array(values, kind)


def _rejects(records: pa.Table, refused: list[tuple[int, Rejected]]) -> pa.Table:
    if not refused:
        return row_types.REJECT.empty_table()
    rows, why = [row for row, _ in refused], [rejected for _, rejected in refused]
    verdict = {
        "event_type": [r.event_type for r in why],
        "schema_version": [r.version for r in why],
        "reason": [str(r.reason) for r in why],
        "field": [r.field for r in why],
        "detail": [r.detail for r in why],
    }
    taken = records.take(pa.array(rows, pa.int64()))
    columns = [*taken.columns, *(pa.array(v, row_types.REJECT.field(n).type) for n, v in verdict.items())]
    return pa.table(columns, schema=row_types.REJECT)
