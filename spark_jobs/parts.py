"""What a measure stores: columns, how they are made of facts, and how they merge."""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa

from spark_jobs.dialect import Sql

# Where a fact stands among all facts: event time first, then the source position. Changelogs leave `at` at 0.
ORDER = pa.struct([("at", pa.int64()), ("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64())])
SPARK_ORDER = "STRUCT<at: BIGINT, topic: STRING, partition: INT, offset: BIGINT>"


class MeasureError(ValueError):
    """A measure cannot be taken of this kind of value: `reason` and what to do, `hint`."""

    def __init__(self, reason: str, hint: str):
        super().__init__(reason)
        self.reason, self.hint = reason, hint


@dataclass(frozen=True)
class Part:
    """One stored column. `finish="hll"`: the speed pass turns DuckDB's list of values into a sketch."""

    column: str
    arrow: pa.DataType
    spark: str
    make: Sql
    merge: Sql
    finish: Literal["hll"] | None = None
