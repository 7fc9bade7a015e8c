"""A measure in its view: its value and filter parsed, its templates placed over the projected facts."""

from dataclasses import dataclass, replace
from functools import cached_property

from spark_jobs.definitions.measures.base import Measure, StateColumn
from spark_jobs.expressions.dialect import placed
from spark_jobs.expressions.expression import Expression
from spark_jobs.expressions.kinds import Kind


@dataclass(frozen=True)
class BoundMeasure:
    """A measure in its view; `value` is null for a plain count."""

    name: str
    measure: Measure
    value: Expression | None
    condition: Expression | None

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
    def input(self) -> str:
        """Column of the projected facts that holds the measured value."""
        return f"i__{self.name}"

    @property
    def filter(self) -> str:
        return f"w__{self.name}"

    @cached_property
    def state(self) -> list[StateColumn]:
        clause = f" FILTER (WHERE {self.filter})" if self.condition else ""
        columns = self.measure.state(self.name, self.kind)
        return [replace(part, make=placed(part.make, x=self.input, f=clause)) for part in columns]
