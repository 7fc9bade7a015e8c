"""Blocks of a source as records in the log: partitions, offsets, lsns, and what the producer meant them to be."""

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa

from spark_jobs.contracts import row_types
from spark_jobs.sample import record_batches
from spark_jobs.sample.block import Block

AT = 1_700_000_000_000_000  # microseconds since 1970
LANDED = pa.schema([*row_types.RECORD, ("outcome", pa.string()), ("reason", pa.string())])


def landed(blocks: Iterable[Block], lsns: int = 1, partitions: int = 3) -> pa.Table:
    """All blocks, topic by topic; each partition's records over the lsns 1..lsns in order, in runs of one length."""
    logs: dict[tuple[str, int], list[dict]] = defaultdict(list)
    for block in blocks:
        rows = zip(block.keys, block.values, block.outcomes, block.reasons, strict=True)
        places = record_batches.partitions(block.keys, block.values, partitions).tolist()
        for partition, (key, value, outcome, reason) in zip(places, rows, strict=True):
            log = logs[block.topic, partition]
            place = {
                "topic": block.topic,
                "partition": partition,
                "offset": len(log),
                "timestamp": 1_700_000_000_000_000,
            }
            log.append({**place, "key": key, "value": value, "outcome": outcome, "reason": reason, "headers": None})
    every = [{**record, "lsn": 1 + record["offset"] * lsns // len(log)} for log in logs.values() for record in log]
    return pa.Table.from_pylist(every, LANDED)


def unlisted(records: pa.Table) -> pa.Table:
    """The same records, as if their producer had kept no ledger."""
    column = records.schema.get_field_index("outcome")
    return records.set_column(column, "outcome", pa.nulls(records.num_rows, pa.string()))
