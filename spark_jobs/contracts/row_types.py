"""The Arrow types of rows: records, facts, rejects, and the rows of the log and of the speed partials.

Arrow schemas are the source; Spark's are derived from them where Spark is at hand.
"""

from datetime import datetime, timedelta

import pyarrow as pa

INSTANT = pa.timestamp("us", tz="UTC")
YEARS = range(1970, 2262)  # of occurred_at: what a nanosecond clock of 64 bits can hold, in whole years
INSTANTS = range((datetime(YEARS.stop, 1, 1) - datetime(YEARS.start, 1, 1)) // timedelta(microseconds=1))
"""The same in microseconds since 1970."""
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

Partition = tuple[str, int]
"""A partition of Kafka: (topic, partition)."""

COORDINATES: list[tuple[str, pa.DataType]] = [
    ("lsn", pa.int64()),
    ("topic", pa.string()),
    ("partition", pa.int32()),
    ("offset", pa.int64()),
]

# One Kafka record as delivered, with the lsn of its micro-batch.
RECORD = pa.schema(
    [*COORDINATES, ("timestamp", INSTANT), ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)]
)

# What stands before the fields of an event type in every facts table. `identity` is the 16-byte key of
# de-duplication; `day` is the date of occurred_at in UTC.
FACT = pa.schema(
    [
        *COORDINATES,
        ("timestamp", INSTANT),
        ("event_type", pa.string()),
        ("event_id", pa.string()),
        ("identity", pa.binary(16)),
        ("occurred_at", INSTANT),
        ("schema_version", pa.int32()),
        ("deleted", pa.bool_()),
    ]
)

# A record that no schema accepts: the record, and why.
REJECT = pa.schema(
    [
        *RECORD,
        ("event_type", pa.string()),
        ("schema_version", pa.int32()),
        ("reason", pa.string()),
        ("field", pa.string()),
        ("detail", pa.string()),
    ]
)

OFFSET_RANGE = pa.struct(
    [("topic", pa.string()), ("partition", pa.int32()), ("from_offset", pa.int64()), ("until_offset", pa.int64())]
)

# The `batch` column of a `__batch__` row of master.log.
BATCH = pa.struct(
    [
        ("epoch", pa.int64()),
        ("ranges", pa.list_(OFFSET_RANGE)),
        ("topic_ids", pa.map_(pa.string(), pa.string())),
        ("records", pa.int64()),
        ("started_at", INSTANT),
        ("landed_at", INSTANT),
        ("accepted_loss", pa.string()),  # a recovery after a hole: what is lost, in words; null otherwise
    ]
)

# A row of master.log: a record, the `__batch__` row of its micro-batch, a schema that comes in force, or a revision.
LOG = pa.schema(
    [("lsn", pa.int64()), ("landed_on", pa.date32()), ("kind", pa.string()), *list(RECORD)[1:], ("batch", BATCH)]
)
RECORD_ROW = "record"
# Greater than the other kinds, so that Delta's statistics tell which files have one.
REVISION_ROW = "revision"
SCHEMA_ROW = "schema"

# The `control` column of speed.partials; which fields are set depends on the row's `view`.
CONTROL = pa.struct(
    [
        ("views", pa.list_(pa.string())),  # __batch__: view columns that have partials at this lsn
        ("records", pa.int64()),
        ("facts", pa.int64()),
        ("rejects", pa.int64()),
        ("duplicates", pa.int64()),
        ("started_at", INSTANT),
        ("finished_at", INSTANT),
        ("topic", pa.string()),  # __reject__, __dup__
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("event_type", pa.string()),
        ("reason", pa.string()),
        ("field", pa.string()),
        ("view", pa.string()),  # __reject__ of one view's expression; null when decode rejected
        ("ids", pa.binary()),  # __ids__: identities of the micro-batch's facts, 16 bytes each
    ]
)

BATCH_ROW = "__batch__"
REJECT_ROW = "__reject__"
DUPLICATE_ROW = "__dup__"
IDS_ROW = "__ids__"
