"""The outcome of a record that is no plain fact: rejected, a duplicate, or late; at most one, the first that fits.

facts, rejects -> of_decoded -> outcomes; facts + outcomes, the duplicates' places -> settled -> what counts

An outcome is a fact of the event type `record_noted`, at its record's place in the log; it happened when Kafka took the
record. It has no identity: nothing can repeat it, so it takes no part in de-duplication and is counted nowhere as a
fact. Pure: Arrow in, Arrow out.
"""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_jobs.contracts import row_types
from spark_jobs.engine.dedupe import all_divided

RECORD_OUTCOME = "record_noted"
OUTCOME_ROW = pa.schema(
    [*row_types.FACT, ("noted_type", pa.string()), ("verdict", pa.string()), ("reason", pa.string())]
)
"""Contract.fact_schema of RECORD_OUTCOME."""
CARRIED = ("lsn", "topic", "partition", "offset", "timestamp")
"""The columns that a fact or an outcome takes over from its record."""

LATE, DUPLICATE, REJECTED = "late", "duplicate", "rejected"
REPEATED = "repeated"
SECOND = 1_000_000
LATENESS = {"minutes": 60 * SECOND, "hours": 3_600 * SECOND, "days": 86_400 * SECOND}
"""Reason of a late record -> Kafka's timestamp is more than so many microseconds after occurred_at."""

Facts = Mapping[str, pa.Table]


def of_decoded(facts: Facts, rejects: pa.Table) -> pa.Table:
    """Outcomes of rejected records (row_types.REJECT) and of late facts, schema OUTCOME_ROW."""
    late = (_late(event_type, rows) for event_type, rows in facts.items())
    rejected = [_outcomes(rejects, rejects["event_type"], REJECTED, rejects["reason"])] if rejects.num_rows else []
    return pa.concat_tables([OUTCOME_ROW.empty_table(), *rejected, *(rows for rows in late if rows is not None)])


def of_duplicates(lost: pa.Table) -> pa.Table:
    """Outcomes of duplicates (columns CARRIED and event_type)."""
    return _outcomes(lost, lost["event_type"], DUPLICATE, pa.repeat(REPEATED, lost.num_rows))


def settled(facts: Facts, duplicates: pa.Table) -> dict[str, pa.Table]:
    """The facts and outcomes that count: outcomes stand in for the `duplicates` (their coordinates)."""
    if not duplicates.num_rows:
        return dict(facts)
    parts = dict(zip(facts, all_divided([*facts.values()], duplicates), strict=True))
    kept = {event_type: left for event_type, (left, _) in parts.items()}
    lost = [of_duplicates(repeated) for event_type, (_, repeated) in parts.items() if event_type != RECORD_OUTCOME]
    return _with_outcomes(kept, lost)


def either_way(facts: Facts) -> dict[str, pa.Table]:
    """Records that one layer counts and the other takes for duplicates, with the outcomes in either layer."""
    return _with_outcomes(facts, [of_duplicates(rows) for rows in countable(facts).values()])


def _with_outcomes(facts: Facts, more: list[pa.Table]) -> dict[str, pa.Table]:
    outcomes = [facts.get(RECORD_OUTCOME, OUTCOME_ROW.empty_table()), *more]
    return {**facts, RECORD_OUTCOME: pa.concat_tables(outcomes)}


def countable(facts: Facts) -> dict[str, pa.Table]:
    """The facts alone, which may repeat and are counted; no outcomes."""
    return {event_type: rows for event_type, rows in facts.items() if event_type != RECORD_OUTCOME}


def _late(event_type: str, facts: pa.Table) -> pa.Table | None:
    arrived, happened = (facts[name].cast(pa.int64()) for name in ("timestamp", "occurred_at"))
    is_late = pc.greater(arrived, pc.add(happened, LATENESS["minutes"]))  # a difference might not fit
    if not pc.any(is_late).as_py():
        return None
    rows = np.flatnonzero(is_late.fill_null(False).to_numpy())
    late, happened = facts.select(CARRIED).take(rows), happened.take(rows)
    arrived = late["timestamp"].cast(pa.int64())
    degree = np.searchsorted([*LATENESS.values()], pc.subtract(arrived, happened).to_numpy()) - 1
    reasons = pa.DictionaryArray.from_arrays(pa.array(degree), [*LATENESS]).cast(pa.string())
    return _outcomes(late, pa.repeat(event_type, len(rows)), LATE, reasons)


def _outcomes(records: pa.Table, noted_type: pa.Array, verdict: str, reason: pa.Array) -> pa.Table:
    size = records.num_rows
    columns = {
        **{name: records[name] for name in CARRIED},
        "event_type": pa.repeat(RECORD_OUTCOME, size),
        "occurred_at": _kept(records["timestamp"]),
        "schema_version": pa.repeat(pa.scalar(1, pa.int32()), size),
        "deleted": pa.repeat(False, size),
        "noted_type": noted_type,
        "verdict": pa.repeat(verdict, size),
        "reason": reason,
    }
    return pa.table([columns.get(f.name, pa.nulls(size, f.type)) for f in OUTCOME_ROW], schema=OUTCOME_ROW)


def _kept(timestamps: pa.ChunkedArray) -> pa.ChunkedArray:
    """The timestamps, moved into the years that facts can have; Kafka takes any."""
    micros = timestamps.cast(pa.int64())
    least = pc.max_element_wise(micros, row_types.INSTANTS.start, skip_nulls=False)
    return pc.min_element_wise(least, row_types.INSTANTS.stop - 1, skip_nulls=False).cast(row_types.INSTANT)
