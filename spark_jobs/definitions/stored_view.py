"""What a view has, whatever its kind; and a stored one, as both layers, publication and serving see it.

AggregateView | SequenceView (bound_view) --as a StoredView--> tables, columns and keys, without asking which it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from spark_jobs.definitions.event_columns import EventTypes
from spark_jobs.definitions.spec import Aggregate, Lookup, Sequence
from spark_jobs.expressions.kinds import Kind


def batch_tables(view_id: str) -> tuple[str, str, str]:
    """Where builds of a view go: an aggregate's partials; a sequence's rows; its results."""
    return f"batch.{view_id}", f"batch.{view_id}_rows", f"batch.{view_id}_results"


@dataclass(frozen=True, eq=False)
class AnyView:
    """A name, a version, a declaration, and the names that follow from them."""

    name: str
    version: int
    declaration: Aggregate | Sequence

    @property
    def id(self) -> str:
        """The file's and the tables' name: `orders_by_day`, later `orders_by_day_v2`."""
        return self.name if self.version == 1 else f"{self.name}_v{self.version}"

    @property
    def column(self) -> str:
        """The struct column of speed.partials."""
        return f"{self.name}_v{self.version}"

    @property
    def owner(self) -> str:
        return self.declaration.owner

    @property
    def description(self) -> str:
        return self.declaration.description

    @property
    def lookups(self) -> Mapping[str, Lookup]:
        """Column -> where its value is looked up when the question is asked."""
        return {}

    @property
    def looked_up(self) -> frozenset[str]:
        """The names of the views whose answers are looked up."""
        return frozenset(lookup.view for lookup in self.lookups.values())


@dataclass(frozen=True, eq=False)
class StoredView(AnyView, ABC):
    """A view that both layers store."""

    event_columns: EventTypes  # of its event types only

    @property
    @abstractmethod
    def event_types(self) -> tuple[str, ...]:
        """All event types that the view reads: those whose facts become rows, then those that stand beside them."""

    @property
    def row_types(self) -> tuple[str, ...]:
        """The event types whose facts become its rows."""
        return self.event_types

    @property
    def side_inputs(self) -> tuple[str, ...]:
        """The event types whose newest fact that landed before a row stands beside the row."""
        return ()

    @property
    @abstractmethod
    def partial_schema(self) -> pa.Schema:
        """What the speed layer stores of a micro-batch."""

    @property
    @abstractmethod
    def stored_keys(self) -> tuple[str, ...]:
        """The stored columns that tell apart the rows of which an answer is made."""

    @property
    @abstractmethod
    def ordered_by(self) -> tuple[str, ...]:
        """The columns in whose order a build stores its rows, and by which it divides them among tasks."""

    @property
    @abstractmethod
    def used_columns(self) -> frozenset[str]:
        """The columns of facts of which rows are made; a field of one event type may be none of another's."""

    @property
    def sketches(self) -> tuple[str, ...]:
        """The stored columns that are computed as lists of values and kept as sketches."""
        return ()

    @property
    @abstractmethod
    def tables(self) -> tuple[str, ...]:
        """The tables that a build of the view writes; for a sequence its rows, then its results."""

    @property
    def bucket(self) -> str | None:
        """The key whose date is the day of occurred_at, and so the partition of the facts that it is made of."""
        return None

    @property
    @abstractmethod
    def served_keys(self) -> Mapping[str, Kind]:
        """The columns that tell the answer's rows apart."""

    @property
    @abstractmethod
    def answer_kinds(self) -> Mapping[str, Kind]:
        """The columns of the answer, those of lookups left out."""
