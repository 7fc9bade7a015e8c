"""The first and the last value, by a stated order of events: the value is stored with its position."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from spark_jobs.definitions.measures.base import (
    Measure,
    StateColumn,
    value_kind,
)
from spark_jobs.expressions.dialect import Dialect
from spark_jobs.expressions.kinds import Kind


@dataclass(frozen=True)
class Last(Measure):
    """The value of the last fact (nulls count) by occurred_at, topic, partition, offset; over a changelog, by position.

    Over a compacted topic the row of a key disappears when its last fact is a tombstone.
    """

    answers: ClassVar[Kind | None] = None
    order: ClassVar[Literal["first", "last"] | None] = "last"

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        kind = value_kind(kind, self)
        by = self.order_column(name)
        duckdb, spark = ("arg_max_null", "max_by") if self.order == "last" else ("arg_min_null", "min_by")
        make = {
            Dialect.DUCKDB: f"{duckdb}({{x}}, event__order){{f}}",
            Dialect.SPARK: f"{spark}({{x}}, event__order){{f}}",
        }
        merge = {Dialect.DUCKDB: f"{duckdb}([{name}], [{by}])", Dialect.SPARK: f"{spark}([{name}], [{by}])"}
        extreme = "max" if self.order == "last" else "min"
        order = StateColumn(by, "POSITION", f"{extreme}(event__order){{f}}", f"{extreme}([{by}])")
        return [StateColumn(name, kind, make, merge), order]


@dataclass(frozen=True)
class First(Last):
    """The value of the first fact, in the order of `Last`."""

    order: ClassVar[Literal["first", "last"] | None] = "first"
