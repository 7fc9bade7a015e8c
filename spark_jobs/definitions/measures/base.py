"""What every measure says: which columns it stores, how they merge, and what is served.

facts --make--> state columns --merge--> fewer rows of the same columns --final--> the answer.
`merge` is associative and commutative, and a partial merged with nothing is itself: tests/laws/test_measures.py.
Templates: `[name]` is a quoted column, `{x}` the measured value, `{o}` the value of the measure's own `by`, `{f}` its
FILTER clause or nothing, `{by}` the keys.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal

from spark_jobs.expressions.dialect import Dialect, Sql, placed
from spark_jobs.expressions.error import Refused
from spark_jobs.expressions.kinds import Kind

if TYPE_CHECKING:
    from spark_jobs.expressions.expression import Expression

StateKind = Kind | Literal["DECIMAL(38,0)", "POSITION", "SKETCH", "BY"]
"""The type of a stored column. POSITION: where a fact stands among all facts; SKETCH: bytes of a HyperLogLog sketch;
BY: the kind of the measure's own `by`, which a bound measure puts in its place."""

WIDE: Literal["DECIMAL(38,0)"] = "DECIMAL(38,0)"
"""Exact sums are this wide, so that no fact can overflow one; they are narrowed when served."""


@dataclass(frozen=True)
class StateColumn:
    """One stored column. A SKETCH is made as DuckDB's list of values, which `engine.sketches` turns into bytes."""

    column: str
    kind: StateKind
    make: Sql
    merge: Sql


@dataclass(frozen=True)
class Measure:
    """of: the measured expression. where: only facts for which it is true. tolerance: for floating values."""

    of: str | None = None
    _: KW_ONLY
    where: str | None = None
    tolerance: float | None = None

    joins_key: ClassVar[bool] = False  # the value, as `keyed`, becomes a key of the partial: column <name>__value
    keyed: ClassVar[Sql] = "{x}"
    order: ClassVar[Literal["first", "last"] | None] = None
    limit: ClassVar[int | None] = None  # of integers: see BoundMeasure.limit
    answers: ClassVar[Kind | None] = "BIGINT"  # the kind that is served; None: that of the value

    def state(self, name: str, kind: Kind | None) -> list[StateColumn]:
        """The stored columns of a measure called `name` of values of this kind. Raises Refused."""
        raise NotImplementedError

    def final(self, name: str, kind: Kind | None) -> Sql:
        """The served value, over the merged state columns."""
        return f"[{name}]"

    def ranked(self, name: str) -> dict[str, str]:
        """Where the value is a key: columns beside each stored row, over those with the same keys `{by}`."""
        return {}

    def collected(self, name: str) -> str:
        """Where the value is a key: the answer, over the stored rows of the other keys."""
        return f"count(DISTINCT [{name}__value])"


@dataclass(frozen=True)
class BoundMeasure:
    """A measure in its view: its templates are placed over the projected facts.

    value: null for a plain count. by: what says which value is served, of the measures that have it.
    """

    name: str
    measure: Measure
    value: "Expression | None"
    condition: "Expression | None"
    by: "Expression | None" = None

    @property
    def kind(self) -> Kind | None:
        return self.value.kind if self.value else None

    @property
    def answer_kind(self) -> Kind:
        """The kind of the served value."""
        kind = self.measure.answers or self.kind
        assert kind is not None  # measures that answer with their value have one
        return kind

    @property
    def limit(self) -> int | None:
        """Integers beyond +-limit make the fact a reject of the view; None: all are taken."""
        return self.measure.limit if self.kind == "BIGINT" else None

    @property
    def input(self) -> str:
        """Column of the projected facts that holds the measured value."""
        return f"i__{self.name}"

    @property
    def filter(self) -> str:
        return f"w__{self.name}"

    @property
    def ordered(self) -> str:
        """Column of the projected facts that holds the value of `by`."""
        return f"o__{self.name}"

    @property
    def parts(self) -> list["Expression"]:
        """What is computed of each fact that counts in the measure."""
        return [part for part in (self.value, self.by) if part]

    @cached_property
    def state(self) -> list[StateColumn]:
        clause = f" FILTER (WHERE {self.filter})" if self.condition else ""
        columns = self.measure.state(self.name, self.kind)
        made = [replace(part, make=placed(part.make, x=self.input, o=self.ordered, f=clause)) for part in columns]
        return [replace(part, kind=self.by.kind) if self.by and part.kind == "BY" else part for part in made]


def value_kind(kind: Kind | None, measure: Measure) -> Kind:
    """The kind of the measured value. Raises Refused where nothing is measured."""
    if kind is None:
        raise Refused(f"{type(measure).__name__} measures nothing", 'say of what: Sum("quantity")')
    return kind


def number_kind(kind: Kind | None, measure: Measure) -> Kind:
    """BIGINT or DOUBLE. Raises Refused for anything else, and for a DOUBLE without a stated tolerance."""
    kind = value_kind(kind, measure)
    if kind not in ("BIGINT", "DOUBLE"):
        raise Refused(f"{type(measure).__name__} of a {kind}", "measure a number, or CAST it to BIGINT")
    if kind == "DOUBLE" and measure.tolerance is None:
        hint = "sums of floats depend on their order: measure integers (cents, metres), or state tolerance=1e-9"
        raise Refused(f"{type(measure).__name__} of a DOUBLE without tolerance", hint)
    return kind


def sum_column(column: str, kind: Kind, value: str, spark_value: str | None = None) -> StateColumn:
    """A sum of `value`: exact of BIGINTs, of DOUBLEs as the engine adds them up."""
    if kind == "DOUBLE":
        return StateColumn(column, kind, f"sum({value}){{f}}", f"sum([{column}])")
    make = {
        Dialect.DUCKDB: f"CAST(sum({value}){{f}} AS {WIDE})",
        Dialect.SPARK: f"CAST(sum(CAST({spark_value or value} AS {WIDE})){{f}} AS {WIDE})",
    }
    return StateColumn(column, WIDE, make, f"CAST(sum([{column}]) AS {WIDE})")


def count_column(column: str, counted: str) -> StateColumn:
    """A count of the rows, or of the values that are not null."""
    return StateColumn(column, "BIGINT", f"count({counted}){{f}}", f"CAST(sum([{column}]) AS BIGINT)")
